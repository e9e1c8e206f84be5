// Dropout: the mask is the contract of src/ops/dropout.h, word for word.
#include "src/ops/dropout.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

Tensor ones(std::int64_t n) {
  Tensor t(DType::kF64, {n});
  for (double& x : t.as<double>()) x = 1;
  return t;
}

OpCase case_of(Tensor x, std::int32_t step, const DropoutAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.inputs.push_back(i32({}, {step}));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kDropout, v, attrs)};
  };
  return c;
}

TEST_CASE("dropout: element e is kept when Philox(seed, stream, step).uniform(e) >= p") {
  const DropoutAttrs rows[] = {{0.5, 1, 2}, {0.1, -1, 0xFFFFFFFFll}, {0.9, 0x123456789ll, 7}};
  for (const DropoutAttrs& attrs : rows) {
    for (std::int32_t step : {0, 1, 1000000}) {
      CAPTURE(Attrs(attrs).text());
      CAPTURE(step);
      OpCase c = case_of(random_normal({5, 7}, 1), step, attrs);
      const Results results = run_reference(c);
      const Philox random(std::uint64_t(attrs.seed), std::uint32_t(attrs.stream),
                          std::uint32_t(step));
      const Tensor weights = random_normal({5, 7}, 900);  // what run_case differentiates
      for (std::int64_t e = 0; e < 35; ++e) {
        const double keep = random.uniform(std::uint64_t(e)) >= attrs.p ? 1 / (1 - attrs.p) : 0;
        CHECK(results.at("y0").at(e) == doctest::Approx(keep * c.inputs[0].at(e)).epsilon(1e-14));
        CHECK(results.at("d0").at(e) == doctest::Approx(keep * weights.at(e)).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("dropout: keeps 1 - p of the elements and the mean") {
  constexpr std::int64_t kElements = 100000;
  for (double p : {0.1, 0.5, 0.8}) {
    CAPTURE(p);
    OpCase c = case_of(ones(kElements), 3, {p, 42, 5});
    c.gradients = false;
    const Tensor y = run_reference(c).at("y0").clone();
    double kept = 0;
    for (double v : y.as<double>()) kept += v != 0;
    // Five standard deviations of a binomial count.
    CHECK(std::abs(kept - (1 - p) * kElements) < 5 * std::sqrt(p * (1 - p) * kElements));
  }
}

double agreement(const Tensor& a, const Tensor& b) {
  double same = 0;
  for (std::int64_t e = 0; e < a.elements(); ++e) same += (a.at(e) != 0) == (b.at(e) != 0);
  return same / double(a.elements());
}

TEST_CASE("dropout: another step, seed or stream draws an independent mask") {
  const auto mask = [](std::int32_t step, const DropoutAttrs& attrs) {
    OpCase c = case_of(ones(10000), step, attrs);
    c.gradients = false;
    return run_reference(c).at("y0").clone();
  };
  const Tensor base = mask(0, {0.5, 1, 1});
  CHECK(agreement(base, mask(0, {0.5, 1, 1})) == 1);
  const Tensor others[] = {mask(1, {0.5, 1, 1}), mask(0, {0.5, 2, 1}), mask(0, {0.5, 1, 2})};
  for (const Tensor& other : others) {
    CHECK(std::abs(agreement(base, other) - 0.5) < 0.025);  // five standard deviations
  }
}

TEST_CASE("dropout: two dropouts of one graph take the streams of their names") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}}), step = g.input("step", {DType::kI32, {}});
  const Value a = ops::dropout(g, x, step, 0.5, 1);
  const auto scope = g.scope("block");
  const Value b = ops::dropout(g, a, step, 0.5, 1);
  CHECK(g.node(a).attrs.as<DropoutAttrs>().stream == stream_of("dropout"));
  CHECK(g.node(b).attrs.as<DropoutAttrs>().stream == stream_of("block/dropout"));
  CHECK(g.node(b).name == "block/dropout");
  CHECK(ops::dropout(g, x, step, 0, 1) == x);
}

TEST_CASE("dropout: gradients") { gradcheck(case_of(random_normal({3, 4}, 1), 2, {0.4, 9, 9})); }

TEST_CASE("dropout: refusals") {
  const auto dropout = [](double p) -> Build {
    return [p](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::dropout(g, v[0], v[1], p, 1)};
    };
  };
  const TensorType x{DType::kF32, {4}}, step{DType::kI32, {}};
  check_op_refused({x, step}, dropout(1), "dropout", "p: expected in [0, 1), got 1");
  check_op_refused({x, step}, dropout(-0.1), "dropout", "p: expected in [0, 1), got -0.1");
  check_op_refused({x, x}, dropout(0.5), "dropout", "step: expected i32, got f32");
  check_op_refused({x, {DType::kI32, {1}}}, dropout(0.5), "dropout", "step: expected (), got (1)");
  check_op_refused({step, step}, dropout(0.5), "dropout", "x: expected a floating type, got i32");
}

}  // namespace
}  // namespace keel::test
