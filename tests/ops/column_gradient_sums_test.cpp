// The sums that backwards of norms over columns need: values by hand, and refusals.
#include "src/ops/column_gradient_sums.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "tests/support/checks.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// x is the column (1, 3, 8) with dy = (1, -2, 5) and the last row left out; mean 2, rstd = rstd
// = 2.
void check_sums(const Build& build, const Tensor& expected) {
  OpCase c;
  c.inputs.push_back(f64({3, 1}, {1, 3, 8}));
  c.inputs.push_back(f64({3, 1}, {1, -2, 5}));
  c.inputs.push_back(f64({1}, {2}));
  c.inputs.push_back(Tensor::of<std::uint8_t>({3}, {1, 1, 0}));
  c.gradients = false;
  c.build = build;
  for (const std::string& name : tested_backends()) {
    CAPTURE(name);
    check_close(run_case(*make_backend(name), c, DType::kF32).at("y0"), expected);
  }
}

Build centred(const CentredSumsAttrs& attrs, bool masked = true) {
  return [=](Graph& g, const std::vector<Value>& in) {
    const ops::CentredColumns of{in[0], in[2], in[2], in[1], masked ? in[3] : Value{}};
    return std::vector{ops::centred_gradient_sums(g, of, attrs)};
  };
}
Build uncentred(const UncentredSumsAttrs& attrs, bool masked = true) {
  return [=](Graph& g, const std::vector<Value>& in) {
    const ops::UncentredColumns of{in[0], in[2], in[1], masked ? in[3] : Value{}};
    return std::vector{ops::uncentred_gradient_sums(g, of, attrs)};
  };
}

// xhat = -2, 2, 12.
TEST_CASE("centred_gradient_sums: K, B, xhat, dy, dy xhat, and the dy of rows left out") {
  check_sums(centred({}), f64({5, 1}, {2, 3, 0, -1, -6}));
  check_sums(centred({.padding = true}), f64({6, 1}, {2, 3, 0, -1, -6, 5}));
  check_sums(centred({.padding = true}, false), f64({6, 1}, {3, 3, 12, 4, 54, 0}));
}

// xhat = 2, 6, 16.
TEST_CASE("uncentred_gradient_sums: K, B, dy, dy xhat, and dy xhat of all rows") {
  check_sums(uncentred({}), f64({4, 1}, {2, 3, -1, -10}));
  check_sums(uncentred({.all_rows = true}), f64({5, 1}, {2, 3, -1, -10, 70}));
  check_sums(uncentred({.all_rows = true}, false), f64({5, 1}, {3, 3, 4, 70, 70}));
}

TEST_CASE("column gradient sums: refusals") {
  const auto types = [](const Shape& dy, const Shape& statistic) {
    return std::vector<TensorType>{
        {DType::kF32, {3, 2}}, {DType::kF32, dy}, {DType::kF32, statistic}, {DType::kU8, {3}}};
  };
  check_op_refused(types({3, 1}, {2}), centred({}), "centred_gradient_sums",
                   "dy: expected (3, 2), got (3, 1)");
  check_op_refused(types({3, 2}, {3}), centred({}), "centred_gradient_sums",
                   "mean: expected (2), got (3)");
  check_op_refused(types({3, 1}, {2}), uncentred({}), "uncentred_gradient_sums",
                   "dy: expected (3, 2), got (3, 1)");
  check_op_refused(types({3, 2}, {3}), uncentred({}), "uncentred_gradient_sums",
                   "rstd: expected (2), got (3)");
}

}  // namespace
}  // namespace keel::test
