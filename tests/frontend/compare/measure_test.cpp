// Measures of error.
#include "frontend/compare/bounds/measure.h"

#include <doctest/doctest.h>

#include <cmath>

namespace keel::compare {
namespace {

Tensor f32(std::initializer_list<float> values) {
  return Tensor::of<float>({std::int64_t(values.size())}, values);
}
Tensor f64(std::initializer_list<double> values) {
  return Tensor::of<double>({std::int64_t(values.size())}, values);
}

Errors errors_of(const Tensor& got, const Tensor& expected, const Tensor& bound) {
  Measure measure;
  measure.add(0, got, expected, &bound);
  return measure.result();
}

TEST_CASE("measure: the largest errors, and where the bound is exceeded most") {
  const Errors e = errors_of(f32({1, 2, -4}), f64({1, 2.5, -4.25}), f64({0.1, 1, 0.125}));
  CHECK(e.absolute == 0.5);
  CHECK(e.relative == doctest::Approx(0.2));
  CHECK(e.of_bound == 2);
  CHECK(!e.within());
  CHECK(e.worst.index == 2);
  CHECK(e.worst.expected == -4.25);
  CHECK(e.worst.got == -4);
  CHECK(e.nmse == doctest::Approx((0.25 + 0.0625) / (1 + 6.25 + 18.0625)));
  CHECK(e.cosine == doctest::Approx(23 / std::sqrt(21.0 * 25.3125)));
}

TEST_CASE("measure: units in the last place are those of float32") {
  CHECK(ulp_of(1) == 0x1p-23);
  CHECK(ulp_of(-3) == 0x1p-22);
  CHECK(ulp_of(0) == 0x1p-149);
  CHECK(errors_of(f32({1.5f}), f64({1.5 + 0x1p-22}), f64({1})).ulps == 2);
}

TEST_CASE("measure: what agrees has no error, whatever its bound") {
  const Errors e = errors_of(f32({0, -1, NAN}), f64({0, -1, NAN}), f64({0, 0, 0}));
  CHECK(e.of_bound == 0);
  CHECK(e.nmse == 0);
  CHECK(e.cosine == 1);
}

TEST_CASE("measure: NaN, infinity and overflow") {
  CHECK(std::isinf(errors_of(f32({NAN}), f64({1}), f64({1e30})).of_bound));
  CHECK(std::isinf(errors_of(f32({1}), f64({NAN}), f64({1e30})).of_bound));
  CHECK(std::isinf(errors_of(f32({INFINITY}), f64({1}), f64({1e30})).of_bound));
  CHECK(errors_of(f32({INFINITY}), f64({1e39}), f64({0})).of_bound == 0);
  CHECK(std::isinf(errors_of(f32({-INFINITY}), f64({1e39}), f64({0})).of_bound));
}

TEST_CASE("measure: without a finite bound what differs is not compared, and counted") {
  const Tensor open = f64({INFINITY, INFINITY, NAN, 1});
  const Errors e = errors_of(f32({1, 2, 3, 4}), f64({1, 3, 5, 4}), open);
  CHECK(e.uncompared == 2);
  CHECK(e.of_bound == 0);
  CHECK(errors_of(f32({1, 3, 5, 4}), f64({1, 3, 5, 4}), open).uncompared == 0);
}

TEST_CASE("measure: integers agree or they do not") {
  const Tensor expected = Tensor::of<std::int32_t>({2}, {3, 4});
  const Tensor got = Tensor::of<std::int32_t>({2}, {3, 5});
  const Errors e = errors_of(got, expected, f64({9, 9}));
  CHECK(std::isinf(e.of_bound));
  CHECK(e.worst.index == 1);
}

TEST_CASE("measure: without a bound nothing is compared, shapes have to agree") {
  Measure measure;
  measure.add(0, f32({1}), f64({9}), nullptr);
  CHECK(measure.result().within());
  CHECK(measure.result().absolute == 8);
  CHECK_THROWS_AS(measure.add(0, f32({1, 2}), f64({9}), nullptr), Error);
}

}  // namespace
}  // namespace keel::compare
