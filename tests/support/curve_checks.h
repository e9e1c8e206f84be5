// The tests that every norm of elements passes: y = gain f(alpha x + shift) + bias.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/gradcheck.h"
#include "tests/support/norm_checks.h"
#include "tests/support/tested_backends.h"
#include "tests/support/thoroughness.h"

namespace keel::test {

// The norm from x, gain, bias and its further parameters, of which `numbers` has values.
struct CurveNorm {
  NormBuild build;
  std::vector<std::string> numbers;
};

// The norm at an alpha and a shift.
inline NormSpec curve_spec(const CurveNorm& norm, double alpha, double shift) {
  NormSpec row{.build = norm.build, .centred = false};
  for (const std::string& name : norm.numbers) row.more[name] = name == "alpha" ? alpha : shift;
  return row;
}

// The backward beside central differences, with and without gain and bias.
inline void check_curve_gradients(const CurveNorm& norm) {
  for (int affine = 0; affine < 4; ++affine) {
    for (const Shape& shape : {Shape{3, 7}, Shape{4, 1}, Shape{33, 35}}) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
      for (std::uint32_t i : {2, 3}) c.inputs.push_back(random_normal(Shape{shape[1]}, i, 1));
      for (std::uint32_t i : {4, 5}) c.inputs.push_back(random_normal(Shape{1}, i, 0.75, 0.25));
      c.build = [&norm, affine](Graph& g, const std::vector<Value>& in) {
        NormInputs inputs{in[0], affine & 1 ? in[1] : Value{}, affine & 2 ? in[2] : Value{}, {}};
        for (std::size_t i = 0; i < norm.numbers.size(); ++i) {
          inputs.more[norm.numbers[i]] = in[3 + i];
        }
        return std::vector{norm.build(g, inputs, 0)};
      };
      gradcheck(c);
    }
  }
}

// Elements that are not finite stay where they are; numbers of any size, zeros and saturated ones
// are within the bounds.
inline void check_curve_specials(const CurveNorm& norm) {
  const NormSpec row = curve_spec(norm, 0.5, 0.125);
  constexpr double kSizes[] = {0, 1e-40, 1e-30, 1e-3, 1, 4, 12, 18, 40, 88, 200, 1e30, 3e38};
  const NormCase c{.groups = std::ssize(kSizes), .n = 37};
  NormData data = data_of(row, c);
  for (std::int64_t k = 0; k < c.groups; ++k) {
    const double size = kSizes[k];
    set_group(data, c, k, [&](auto e) { return (e % 2 ? size : -size) * (1 - 0.01 * double(e)); });
  }
  check_data(row, c, data);
  const NormResult finite = run_fast(row, data);
  const std::int64_t of_nan = c.at(4, 5), of_infinity = c.at(4, 6);
  data.x.as<double>()[std::size_t(of_nan)] = NAN;
  data.x.as<double>()[std::size_t(of_infinity)] = INFINITY;
  const NormResult got = run_fast(row, data);
  for (std::int64_t i = 0; i < data.x.elements(); ++i) {
    const double y = got.outputs[0].at(i), dx = got.gradients[0].at(i);
    CAPTURE(i);
    if (i == of_nan) CHECK((std::isnan(y) && std::isnan(dx)));
    if (i == of_infinity) {
      CHECK(y == doctest::Approx(data.gain->at(6) + data.bias->at(6)));
      CHECK(dx == 0);
    }
    if (i == of_nan || i == of_infinity) continue;
    CHECK(y == finite.outputs[0].at(i));
    CHECK(dx == finite.gradients[0].at(i));
  }
}

// The shared parts of a row norm's test. Every case has an alpha and a shift of its own, so that
// elements of every size lie where the curve bends, too.
inline void check_curve_agrees(const CurveNorm& norm) {
  std::vector<NormCase> cases = tested_cases(NormLayout::kRows);
  for (const NormCase& c : tested_large_cases(NormLayout::kRows)) cases.push_back(c);
  for (const NormCase& c : cases) {
    const double size = std::max(std::abs(c.mean), c.deviation);
    for (const auto& [alpha, shift] : {std::pair{0.5, 0.0}, {1 / size, -0.75}}) {
      const NormSpec row = curve_spec(norm, double(float(alpha)), shift);
      CAPTURE(alpha);
      check_case(row, c);
    }
  }
}

}  // namespace keel::test
