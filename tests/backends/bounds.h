// What float32 sums may be off, and comparisons with the float64 reference backend within that.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "tests/support/graph_runner.h"

namespace keel::test {

inline constexpr double kEps = 0x1p-24;  // half the distance from 1 to the next float

// Bound on a sum of k products of standard normal numbers. After i terms a running sum has a size
// of about sqrt(i) and is rounded by up to eps of it; the k errors are of either sign, so together
// they have a deviation of at most eps * sqrt(1 + 2 + ... + k), about 0.7 eps k (less, as most
// errors are smaller): eps * sqrt(k) relative to the sum. 4 eps k is more than five deviations, for
// the largest of up to a million elements; 32 eps covers the one or two roundings of a short sum.
inline double sum_bound(std::int64_t k) { return kEps * (4 * double(k) + 32); }

// The largest |got - expected|; infinite where only one of them is NaN.
inline double largest_error(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.shape() == expected.shape());
  double largest = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double a = got.at(i), b = expected.at(i);
    if (std::isnan(a) != std::isnan(b)) return INFINITY;
    if (!std::isnan(a) && a != b) largest = std::max(largest, std::abs(a - b));
  }
  return largest;
}

// Standard normal numbers that float32 holds exactly, so that both backends see the same ones.
inline Tensor random_f32(const Shape& shape, std::uint32_t stream) {
  return random_normal(shape, stream).to(DType::kF32).to(DType::kF64);
}

// Runs a case on the backend under test, the default one, and on the reference backend, and CHECKs
// each result named in `bounds` against its bound.
inline void check_against_reference(const OpCase& op_case,
                                    const std::map<std::string, double>& bounds) {
  const Results got = run_case(*make_backend(default_backend(), {2}), op_case, DType::kF32);
  const Results expected = run_case(*make_backend("reference"), op_case, DType::kF32);
  for (const auto& [name, bound] : bounds) {
    CAPTURE(name);
    REQUIRE(got.contains(name));
    CHECK(largest_error(got.at(name), expected.at(name)) <= bound);
  }
}

}  // namespace keel::test
