// The soft window over a text.
#include "src/ops/attention_window.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase window_case(Tensor components, Tensor before, Tensor text, std::int64_t symbols) {
  OpCase c;
  c.inputs.push_back(std::move(components));
  c.inputs.push_back(std::move(before));
  c.inputs.push_back(std::move(text));
  c.build = [symbols](Graph& g, const std::vector<Value>& v) {
    const auto window = ops::attention_window(g, v[0], v[1], v[2], symbols);
    return std::vector{window.w, window.kappa, window.phi};
  };
  return c;
}

TEST_CASE(
    "attention_window: bumps stand where they have moved, and symbols gather what is on them") {
  // alpha = 1, beta = ln 2, kappa = 1 + 1 = 2; the text is "0 1 0" and padding.
  const double beta = std::log(std::log(2.0));
  const Results results = run_reference(
      window_case(f64({1, 3}, {0, beta, 0}), f64({1, 1}, {1}), i32({1, 4}, {0, 1, 0, -1}), 3));
  check_close(results.at("y1"), f64({1, 1}, {2}));
  check_close(results.at("y2"), f64({1, 4}, {0.5, 1, 0.5, 0}));
  check_close(results.at("y0"), f64({1, 3}, {1, 1, 0}));
}

TEST_CASE("attention_window: bumps add up, and only forward is a way") {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0), flat = -800;
  const Results results = run_reference(window_case(f64({1, 6}, {ln2, ln3, flat, flat, -1e3, 1}),
                                                    f64({1, 2}, {3, 4}), i32({1, 2}, {1, 0}), 2));
  check_close(results.at("y0"), f64({1, 2}, {5, 5}));
  check_close(results.at("y1"), f64({1, 2}, {3, 4 + std::exp(1.0)}));
}

TEST_CASE("attention_window: a symbol that is not there makes its row NaN, and no other") {
  const double nan = std::nan("");
  OpCase c = window_case(f64({2, 3}, {0, 0, 0, 0, -800, 0}), f64({2, 1}, {0, 0}),
                         i32({2, 2}, {0, 2, 1, 1}), 2);
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 2}, {nan, nan, 0, 2}));
  CHECK(std::isnan(results.at("d0").at(0)));
  CHECK(!std::isnan(results.at("d0").at(3)));
}

TEST_CASE("attention_window: gradients") {
  for (const std::int64_t bumps : {1, 3}) {
    OpCase c = window_case(random_normal({2, 3 * bumps}, 1, -0.5), random_normal({2, bumps}, 2, 2),
                           i32({2, 4}, {0, 2, 0, 1, 1, 0, -1, -1}), 3);
    gradcheck(c);
    for (int wanted = 0; wanted < 3; ++wanted) {
      CAPTURE(wanted);
      OpCase one;
      for (const Tensor& t : c.inputs) one.inputs.push_back(t.clone());
      one.build = [&](Graph& g, const std::vector<Value>& v) {
        return std::vector{c.build(g, v)[std::size_t(wanted)]};
      };
      gradcheck(one);
    }
  }
}

TEST_CASE("attention_window: refusals") {
  const TensorType components{DType::kF32, {4, 6}}, before{DType::kF32, {4, 2}};
  const TensorType text{DType::kI32, {4, 5}};
  const auto window = [](std::int64_t symbols) -> Build {
    return [symbols](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::attention_window(g, v[0], v[1], v[2], symbols).w};
    };
  };
  const char* op = "attention_window";
  check_op_refused({{DType::kI32, {4, 6}}, before, text}, window(3), op,
                   "components: expected a floating type, got i32");
  check_op_refused({{DType::kF32, {4, 5}}, before, text}, window(3), op,
                   "components: expected (4, 6), got (4, 5)");
  check_op_refused({components, {DType::kF32, {4}}, text}, window(3), op,
                   "kappa: expected (rows, bumps >= 1), got (4)");
  check_op_refused({components, {DType::kF64, {4, 2}}, text}, window(3), op,
                   "kappa: expected f32, got f64");
  check_op_refused({components, before, {DType::kF32, {4, 5}}}, window(3), op,
                   "text: expected i32, got f32");
  check_op_refused({components, before, {DType::kI32, {3, 5}}}, window(3), op,
                   "text: expected (4, symbols >= 1), got (3, 5)");
  check_op_refused({components, before, {DType::kI32, {4, 0}}}, window(3), op,
                   "text: expected (4, symbols >= 1), got (4, 0)");
  check_op_refused({components, before, text}, window(0), op, "symbols: expected >= 1, got 0");
}

}  // namespace
}  // namespace keel::test
