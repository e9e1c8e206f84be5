// Errors of an order between points, against the reference backend.
#include "src/ops/order_violation.h"

#include <cmath>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase error_case(const OrderViolationSizes& sizes) {
  OpCase c;
  c.inputs.push_back(random_f32({sizes.n, sizes.width}, 1));
  c.inputs.push_back(random_f32({sizes.m, sizes.width}, 2));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::order_violation(g, v[0], v[1])};
  };
  return c;
}

// A square is off by three roundings, two of them of the difference; squares are added up in double
// and rounded once.
void check_errors(const Tensor& got, const Tensor& expected) {
  check_within(got, expected, [&](auto i) { return 5 * kEps * expected.at(i); });
}

// 2 sum |de| max(0, x - y) over the points of the other side: the difference, the product and one
// rounding for each of the terms.
void check_gradients(const OpCase& c, const OrderViolationSizes& sizes) {
  const Results got = run_tested(c), expected = run_reference(c);
  const Tensor de = random_normal({sizes.n, sizes.m}, 900).to(DType::kF32);
  Tensor of_x(DType::kF64, {sizes.n, sizes.width}), of_y(DType::kF64, {sizes.m, sizes.width});
  for (std::int64_t i = 0; i < sizes.n; ++i) {
    for (std::int64_t j = 0; j < sizes.m; ++j) {
      for (std::int64_t k = 0; k < sizes.width; ++k) {
        const std::int64_t a = i * sizes.width + k, b = j * sizes.width + k;
        const double term = 2 * std::abs(de.at(i * sizes.m + j)) *
                            std::max(0.0, c.inputs[0].at(a) - c.inputs[1].at(b));
        of_x.as<double>()[std::size_t(a)] += term;
        of_y.as<double>()[std::size_t(b)] += term;
      }
    }
  }
  check_within(got.at("d0"), expected.at("d0"),
               [&](auto i) { return kEps * double(sizes.m + 3) * of_x.at(i); });
  check_within(got.at("d1"), expected.at("d1"),
               [&](auto i) { return kEps * double(sizes.n + 3) * of_y.at(i); });
}

TEST_CASE("backend order_violation: accurate at every width") {
  for_each_target([] {
    for (const std::int64_t width : kSizes) {
      CAPTURE(width);
      const OrderViolationSizes sizes{width > 1000 ? 2 : 5, 3, width};
      const OpCase c = error_case(sizes);
      check_errors(run_tested(c).at("y0"), run_reference(c).at("y0"));
      check_gradients(c, sizes);
    }
  });
}

TEST_CASE("backend order_violation: accurate for any number of points") {
  for (const OrderViolationSizes& sizes :
       {OrderViolationSizes{1, 1, 8}, {129, 1, 8}, {1, 129, 8}, {130, 65, 40}}) {
    const OpCase c = error_case(sizes);
    check_errors(run_tested(c).at("y0"), run_reference(c).at("y0"));
    check_gradients(c, sizes);
  }
}

TEST_CASE("backend order_violation: NaN is met by NaN, and pairs without a gradient do not count") {
  OpCase c = error_case({3, 2, 5});
  c.inputs[0].as<double>()[7] = NAN;
  const Results got = run_tested(c), expected = run_reference(c);
  for (const char* name : {"y0", "d0", "d1"}) {
    CAPTURE(std::string(name));
    const Tensor& other = expected.at(name);
    check_within(got.at(name), other,
                 [&](auto i) { return 20 * kEps * (1 + std::abs(other.at(i))); });
  }
  CHECK(std::isnan(got.at("y0").at(2)));
}

TEST_CASE("backend order_violation: results do not depend on the thread count") {
  check_thread_counts(error_case({301, 203, 129}));
}

}  // namespace
}  // namespace keel::test
