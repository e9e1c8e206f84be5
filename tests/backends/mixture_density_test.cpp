// The density of a mixture against the judge, within what rounding may add.
#include "src/ops/mixture_density.h"

#include <algorithm>
#include <cmath>

#include "src/ops/layout.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase mixture_of(std::int64_t rows, std::int64_t components, double deviation) {
  OpCase c;
  const Tensor y = random_normal({rows, 1 + 6 * components}, 1, 0, deviation);
  c.inputs.push_back(y.to(DType::kF32).to(DType::kF64));
  c.inputs.push_back(random_f32({rows, 3}, 2));
  Tensor mask(DType::kU8, {rows});
  std::uint8_t* counts = mask.as<std::uint8_t>().data();
  for (std::int64_t i = 0; i < rows; ++i) {
    double& pen = c.inputs[1].as<double>()[std::size_t(3 * i + 2)];
    pen = pen > 0 ? 1 : 0;
    counts[i] = i % 5 != 3;
  }
  c.inputs.push_back(std::move(mask));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::mixture_density(g, v[0], v[1], v[2]).nll};
  };
  return c;
}

TEST_CASE("backend mixture_density: every number of components") {
  for (const std::int64_t components : {1, 2, 20, 31, 32, 33, 70}) {
    CAPTURE(components);
    check_sampled([&](CaseBuilder& d) {
      const Value y = d.normal({15, 1 + 6 * components}), points = d.normal({15, 3});
      const Value mask = ops::reshape(d.graph, d.mask({5, 3}), {15});
      const auto mixture = ops::mixture_density(d.graph, y, points, mask);
      d.differentiate({mixture.nll});
      d.mark({mixture.held});
    });
  }
}

TEST_CASE("backend mixture_density: hats beyond their limits are held, counted and not moved") {
  for (const double deviation : {4.0, 20.0}) {
    CAPTURE(deviation);
    OpCase c = mixture_of(200, 3, deviation);
    const Results got = run_tested(c), expected = run_reference(c);
    for (std::int64_t e = 0; e < expected.at("d0").elements(); ++e) {
      // A float has no number below 2^-149.
      CHECK((got.at("d0").at(e) == 0) == (std::abs(expected.at("d0").at(e)) < 0x1p-149));
    }
    c.gradients = false;
    c.build = [](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::mixture_density(g, v[0], v[1], v[2]).held};
    };
    const Results held = run_tested(c);
    check_within(held.at("y0"), run_reference(c).at("y0"), [](auto) { return 0.0; });
    double total = 0;
    for (std::int64_t i = 0; i < 200; ++i) total += held.at("y0").at(i);
    CHECK(total > 20);
  }
}

TEST_CASE("backend mixture_density: what the mask hides does not matter, be it no number") {
  OpCase c = mixture_of(10, 4, 1);
  for (std::int64_t e = 3 * 25; e < 4 * 25; ++e) c.inputs[0].as<double>()[std::size_t(e)] = NAN;
  const Results got = run_tested(c);
  CHECK(got.at("y0").at(3) == 0);
  for (std::int64_t i = 0; i < 10; ++i) CHECK(std::isfinite(got.at("y0").at(i)));
  for (std::int64_t e = 0; e < 250; ++e) CHECK(std::isfinite(got.at("d0").at(e)));
  c.inputs[2].as<std::uint8_t>()[3] = 1;
  CHECK(std::isnan(run_tested(c).at("y0").at(3)));
}

TEST_CASE("backend mixture_density: a component without weight is as if it were not there") {
  constexpr std::int64_t kRows = 10, kParts = 6;
  OpCase c = mixture_of(kRows, 4, 1), less = mixture_of(kRows, 3, 1);
  const auto all = c.inputs[0].as<double>(), kept = less.inputs[0].as<double>();
  for (std::int64_t i = 0; i < kRows; ++i) {
    double* const y = all.data() + i * (1 + kParts * 4);
    double* const of_three = kept.data() + i * (1 + kParts * 3);
    y[1 + 4 * MixturePart::kPi] = -INFINITY;
    of_three[0] = y[0];
    for (std::int64_t part = 0; part < kParts; ++part) {
      std::copy_n(y + 1 + part * 4 + 1, 3, of_three + 1 + part * 3);
    }
  }
  const Results got = run_tested(c), expected = run_tested(less);
  for (std::int64_t i = 0; i < kRows; ++i) {
    CHECK(got.at("y0").at(i) == doctest::Approx(expected.at("y0").at(i)).epsilon(1e-6));
  }
  const Tensor dx = got.at("d0").to(DType::kF64);
  for (const double d : dx.as<double>()) CHECK(std::isfinite(d));
}

}  // namespace
}  // namespace keel::test
