// Every norm on generated cases, and what an error amounts to.
#include "bench/norm_accuracy.h"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <map>

#include "backends/backends.h"
#include "backends/reference/backend.h"
#include "bench/norm_errors.h"
#include "src/ops/norm/layer_norm.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/graph_runner.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

Value layer_norm(Graph& g, const NormInputs& in, double eps) {
  return ops::layer_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
}

// Its kernels write one element more than they should: of an input, or after an output.
class Careless : public reference::ReferenceBackend {
 public:
  explicit Careless(bool over_input) : over_input_(over_input) {}
  Prepared prepare(const NodeContext& context) override {
    Prepared prepared = ReferenceBackend::prepare(context);
    prepared.bind = [this, bind = prepared.bind](const Binding& b) -> Kernel {
      const TensorRef& x = b.inputs[NormInput::kX];
      double* wrong =
          over_input_ ? x.as<double>() : b.outputs[NormOutput::kY].as<double>() + x.elements();
      return [kernel = bind(b), wrong] {
        kernel();
        *wrong = 1;
      };
    };
    return prepared;
  }

 private:
  bool over_input_;
};

}  // namespace

TEST_CASE("run_norm: writing where nothing should be written is found") {
  const NormData data = make_data({.n = 40});
  for (bool over_input : {false, true}) {
    Careless backend(over_input);
    CHECK_THROWS_AS(run_norm(backend, layer_norm, data), Error);
  }
}

TEST_CASE("norms: thousands of generated cases over all variants keep the bounds" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend(default_backend(), {2});
  const auto cases_of = [](NormLayout layout) {
    return tested_cases(layout, is_thorough() ? 1 : 61);
  };
  std::int64_t cases = 0;
  for (const std::string& norm : bench::accuracy_norms()) {
    const bench::NormAccuracy accuracy = bench::measure_accuracy(*backend, norm, cases_of);
    cases += accuracy.cases;
    for (const bench::WorstError& worst : accuracy.worst) {
      CAPTURE(norm);
      CAPTURE(worst.of);
      CAPTURE(worst.at);
      CHECK(worst.error <= worst.bound);
    }
  }
  MESSAGE(cases, " cases");
  CHECK(cases >= (is_thorough() ? 50000 : 2000));
}

TEST_CASE("norm_errors: an error of one element in its own unit") {
  const NormCase c{.n = 40, .mean = 3, .deviation = 2};
  const NormData data = make_data(c);
  const auto reference = make_backend("reference");
  const NormResult expected = run_norm(*reference, layer_norm, data);
  NormResult got = run_norm(*reference, layer_norm, data);
  NormErrors errors = norm_errors(c, data, got, expected);
  CHECK(errors.forward + errors.dx + errors.parameters == 0);
  for (Tensor* t : {&got.outputs[NormOutput::kY], &got.gradients[AffineGradient::kDx],
                    &got.gradients[AffineGradient::kDbias]}) {
    t->as<double>()[7] += 100 * kEps;
  }
  errors = norm_errors(c, data, got, expected);
  // y is of size 1 or 2 here; dx about g / 2; dbias a sum of three |dy|.
  CHECK(errors.forward ==
        doctest::Approx(100 / std::max(1.0, std::abs(expected.outputs[NormOutput::kY].at(7)))));
  double sum = 0, largest = 0;
  for (std::int64_t k = 0; k < 3; ++k) sum += std::abs(data.dy.at(c.at(k, 7)));
  for (std::int64_t e = 0; e < c.n; ++e) {
    largest = std::max(largest, std::abs(data.dy.at(e) * data.gain->at(e)));
  }
  CHECK(errors.parameters == doctest::Approx(100 / sum));
  CHECK(errors.dx ==
        doctest::Approx(100 / (largest * expected.outputs[LayerNormOutput::kRstd].at(0))));
  got.outputs[NormOutput::kY].as<double>()[0] = NAN;
  CHECK(std::isinf(norm_errors(c, data, got, expected).forward));
}

TEST_CASE("norm_errors: values beyond the floats") {
  const NormCase c{.groups = 1, .n = 2, .gain = false, .bias = false};
  const NormData data = make_data(c);
  const auto reference = make_backend("reference");
  NormResult expected = run_norm(*reference, layer_norm, data);
  NormResult got = run_norm(*reference, layer_norm, data);
  const auto error = [&](double value, double of) {
    got.outputs[NormOutput::kY].as<double>()[0] = value;
    expected.outputs[NormOutput::kY].as<double>()[0] = of;
    return norm_errors(c, data, got, expected).forward;
  };
  const double largest = std::numeric_limits<float>::max();
  CHECK(error(INFINITY, 1e39) == 0);
  CHECK(error(largest, 1e39) == 0);
  CHECK(error(NAN, NAN) == 0);
  CHECK(std::isinf(error(-INFINITY, 1e39)));
  CHECK(std::isinf(error(1e38, 1e39)));
  CHECK(std::isinf(error(INFINITY, 1)));
}

TEST_CASE("NormCase: its text describes it") {
  const NormCase c{NormLayout::kInstances, 6, 9, -3e4, 1e-3, 0.1, false, true, 0, 2};
  const NormCase read = NormCase::parse(c.text());
  CHECK(c.text() ==
        "instances,groups=6,n=9,split=2,mean=-30000,eps=0.1,deviation=0.001,gain=false,bias=true");
  CHECK(read.text() == c.text());
  CHECK(read.shape() == Shape{3, 2, 1, 9});
  CHECK(NormCase::parse("columns").shape() == Shape{17, 3});
}

#ifdef KEEL_ONEDNN
namespace {

// The kept hashes by norm and case.
std::map<std::string, std::string> kept_hashes() {
  std::ifstream file(KEEL_SOURCE "/bench/results/norm_hashes.txt");
  std::map<std::string, std::string> hashes;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 17 && line[0] != '#') hashes[line.substr(17)] = line.substr(0, 16);
  }
  return hashes;
}

// Instruction sets with fused multiply-add; without it the bits are others.
bool is_fused() { return onednn::simd_target().starts_with("AVX"); }

}  // namespace

TEST_CASE("norms: the same bits on every instruction set with fused multiply-add" *
          doctest::test_suite("slow")) {
  if (default_backend() != "onednn") return;
  const std::map<std::string, std::string> kept = kept_hashes();
  REQUIRE(kept.size() > 900);
  for_each_target([&] {
    const auto backend = make_backend("onednn", {2});
    if (!is_fused()) return;
    std::size_t met = 0;
    for (const std::string& norm : accuracy_norms()) {
      for (const NormHash& h : norm_hashes(*backend, norm)) {
        CAPTURE(h.of);
        const auto found = kept.find(h.of);
        if (found == kept.end()) continue;  // a norm that is not in the file yet
        CHECK(found->second == fmt::format("{:016x}", h.hash));
        ++met;
      }
    }
    CHECK(met == kept.size());
  });
}
#endif

}  // namespace keel::test
