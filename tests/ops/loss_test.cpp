// Losses on logits, and the count of wrong classifications.
#include "src/ops/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase cross_entropy_case(Tensor logits, Tensor labels, const CrossEntropyAttrs& attrs = {}) {
  OpCase c;
  c.inputs.push_back(std::move(logits));
  c.inputs.push_back(std::move(labels));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::cross_entropy(g, v[0], v[1], attrs);
    return std::vector{loss.mean, loss.sum};
  };
  return c;
}

Results run_forward(OpCase c) {
  c.gradients = false;
  return run_reference(c);
}

// p = (1/4, 3/4) in both rows.
Tensor quarter_logits() { return f64({2, 2}, {0, std::log(3.0), 0, std::log(3.0)}); }

TEST_CASE("cross_entropy: values by hand, with smoothing and an ignored row") {
  const double first = std::log(4.0), second = std::log(4.0 / 3);
  struct Row {
    std::int32_t labels[2];
    CrossEntropyAttrs attrs;
    double mean, sum;
  };
  const double smooth = 0.8 * first + 0.2 * (first + second) / 2;
  const Row rows[] = {{{0, 1}, {}, (first + second) / 2, first + second},
                      {{1, 1}, {}, second, 2 * second},
                      {{0, -1}, {}, first, first},
                      {{0, 7}, {.ignore_index = 7}, first, first},
                      {{0, 0}, {.label_smoothing = 0.2}, smooth, 2 * smooth},
                      {{0, 1}, {.label_smoothing = 1}, (first + second) / 2, first + second},
                      {{0, 1}, {.ignore_index = 1}, first, first},
                      {{-1, -1}, {}, 0, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.labels[0]);
    CAPTURE(row.labels[1]);
    CAPTURE(Attrs(row.attrs).text());
    const Results results = run_forward(
        cross_entropy_case(quarter_logits(), i32({2}, {row.labels[0], row.labels[1]}), row.attrs));
    check_close(results.at("y0"), f64({}, {row.mean}), 1e-15);
    check_close(results.at("y1"), f64({}, {row.sum}), 1e-15);
  }
}

TEST_CASE("cross_entropy: a label outside the classes makes both sums NaN") {
  for (std::int32_t label : {2, -2, 1000}) {
    const Results results = run_forward(cross_entropy_case(quarter_logits(), i32({2}, {0, label})));
    CHECK(std::isnan(results.at("y0").at(0)));
    CHECK(std::isnan(results.at("y1").at(0)));
  }
}

TEST_CASE("cross_entropy: large logits stay exact and impossible classes do not matter") {
  const double inf = std::numeric_limits<double>::infinity();
  const Results results =
      run_forward(cross_entropy_case(f64({2, 3}, {1e4, 0, -1e4, 2, 2, -inf}), i32({2}, {1, 0})));
  check_close(results.at("y1"), f64({}, {1e4 + std::log(2.0)}), 1e-15);
}

TEST_CASE("cross_entropy: gradients") {
  for (double smoothing : {0.0, 0.1, 1.0}) {
    CAPTURE(smoothing);
    gradcheck(cross_entropy_case(random_normal({4, 3}, 1), i32({4}, {2, 0, -1, 1}),
                                 {.label_smoothing = smoothing}));
    gradcheck(cross_entropy_case(random_normal({3, 1}, 1), i32({3}, {0, 0, 0}),
                                 {.label_smoothing = smoothing}));
  }
}

TEST_CASE("cross_entropy: rows that are all ignored give a gradient of 0, not NaN") {
  const Results results =
      run_reference(cross_entropy_case(random_normal({2, 3}, 1), i32({2}, {-1, -1})));
  check_close(results.at("d0"), f64({2, 3}, {0, 0, 0, 0, 0, 0}), 0);
}

TEST_CASE("cross_entropy: the gradient of the mean alone and of the sum alone") {
  for (bool of_sum : {false, true}) {
    OpCase c;
    c.inputs.push_back(quarter_logits());
    c.inputs.push_back(i32({2}, {0, 1}));
    c.gradients = false;
    c.build = [of_sum](Graph& g, const std::vector<Value>& v) {
      const ops::Loss loss = ops::cross_entropy(g, v[0], v[1]);
      return gradient(g, of_sum ? loss.sum : loss.mean, std::vector{v[0]});
    };
    const double f = of_sum ? 1 : 0.5;
    check_close(run_reference(c).at("y0"), f64({2, 2}, {-.75 * f, .75 * f, .25 * f, -.25 * f}));
  }
}

TEST_CASE("bce_with_logits: values and gradients") {
  OpCase c;
  c.inputs.push_back(f64({3}, {0, std::log(3.0), -800}));
  c.inputs.push_back(f64({3}, {1, 0.5, 1}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const ops::Loss loss = ops::bce_with_logits(g, v[0], v[1]);
    return std::vector{loss.mean, loss.sum};
  };
  // -log 1/2;  -(log 3/4 + log 1/4) / 2;  800
  const double sum = std::log(2.0) - (std::log(0.75) + std::log(0.25)) / 2 + 800;
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({}, {sum / 3}), 1e-15);
  check_close(results.at("y1"), f64({}, {sum}), 1e-15);
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}}) {
    CAPTURE(shape.text());
    c.inputs[0] = random_normal(shape, 1);
    c.inputs[1] = random_normal(shape, 2);
    gradcheck(c, {.skip = {1}});  // targets get no gradient by definition
    check_close(run_reference(c).at("d1"), Tensor(DType::kF64, shape), 0);
  }
}

TEST_CASE("classification_errors: the first largest logit decides") {
  OpCase c;
  c.inputs.push_back(f64({6, 3}, {0, 1, 2, 2, 1, 0, 3, 3, 0, 0, 3, 3, 0, 0, 0, 9, 0, 0}));
  c.inputs.push_back(i32({6}, {2, 1, 0, 2, -1, 0}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::classification_errors(g, v[0], v[1]),
                       ops::classification_errors(g, v[0], v[1], 2)};
  };
  const Results results = run_reference(c);
  CHECK(results.at("y0").at(0) == 2);  // right, wrong, tie won, tie lost, ignored, right
  CHECK(results.at("y1").at(0) == 2);  // ignored, wrong, tie won, ignored, -1 is no class, right
}

TEST_CASE("classification_errors: a row with a NaN is wrong, wherever it stands") {
  OpCase c;
  c.inputs.push_back(f64({4, 3}, {NAN, 1, 0, 0, 1, NAN, NAN, NAN, NAN, 2, NAN, 1}));
  c.inputs.push_back(i32({4}, {0, 1, 0, -1}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::classification_errors(g, v[0], v[1])};
  };
  CHECK(run_reference(c).at("y0").at(0) == 3);  // the last one is ignored
}

TEST_CASE("cross_entropy_backward: what the forward gave has the type of the logits") {
  const TensorType logits{DType::kF32, {4, 3}}, labels{DType::kI32, {4}};
  for (std::size_t wrong = 2; wrong < 6; ++wrong) {
    std::vector<TensorType> types{
        logits,           labels, {DType::kF32, {4}}, {DType::kF32, {}}, {DType::kF32, {}},
        {DType::kF32, {}}};
    types[wrong].dtype = DType::kF64;
    check_op_refused(
        types,
        [](Graph& g, const std::vector<Value>& v) {
          return std::vector{g.add(kCrossEntropyBackward, v, CrossEntropyAttrs{})};
        },
        "cross_entropy_backward",
        fmt::format("{}: expected f32, got f64", wrong == 2 ? "log_sum_exp" : "scalar"));
  }
}

TEST_CASE("loss: refusals") {
  const TensorType logits{DType::kF32, {4, 3}}, labels{DType::kI32, {4}};
  const auto ce = [](CrossEntropyAttrs attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::cross_entropy(g, v[0], v[1], attrs).mean};
    };
  };
  const char* op = "cross_entropy";
  check_op_refused({{DType::kF32, {4}}, labels}, ce({}), op, "logits: expected (rows, classes");
  check_op_refused({{DType::kF32, {4, 0}}, labels}, ce({}), op, "logits: expected (rows, classes");
  check_op_refused({{DType::kI32, {4, 3}}, labels}, ce({}), op, "logits: expected a floating type");
  check_op_refused({logits, logits}, ce({}), op, "labels: expected i32, got f32");
  check_op_refused({logits, {DType::kI32, {3}}}, ce({}), op, "labels: expected (4), got (3)");
  check_op_refused({logits, labels}, ce({.label_smoothing = 1.5}), op,
                   "label_smoothing: expected in [0, 1], got 1.5");
  check_op_refused(
      {logits, {DType::kF32, {3}}},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::bce_with_logits(g, v[0], v[1]).mean};
      },
      "bce_with_logits", "targets: expected (4, 3), got (3)");
  check_op_refused(
      {logits, {DType::kI32, {3}}},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::classification_errors(g, v[0], v[1])};
      },
      "classification_errors", "labels: expected (4), got (3)");
  Graph g;
  const Value x = g.input("x", logits), t = g.input("t", labels);
  check_refused([&] { gradient(g, ops::classification_errors(g, x, t), std::vector{x}); },
                "[classification_errors] has no backward");
}

}  // namespace
}  // namespace keel::test
