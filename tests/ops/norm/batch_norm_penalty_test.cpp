// Regularized batch norm: the gradient of the penalties on what lies between the statistics of the
// batch and the running ones, by hand and by differentiating the loss that has them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

const BatchNormAttrs kPenalties{
    .eps = 0.01, .keep = 0.75, .mean_penalty = 0.7, .deviation_penalty = 0.4};

BatchNormAttrs without_penalties(BatchNormAttrs attrs) {
  attrs.mean_penalty = attrs.deviation_penalty = 0;
  return attrs;
}

// The penalties of x (rows, channels) as a loss of elementary ops.
Value penalty_of(Graph& g, Value x, Value norm, const BatchNormAttrs& attrs) {
  const DType dtype = g.type(x).dtype;
  const double rows = double(g.shape(x)[0]);
  const Value eps = g.constant(attrs.eps, dtype), mean = ops::mean(g, x, {0});
  const Value squares = ops::sum(g, ops::square(g, ops::sub(g, x, mean)), {0});
  const Value variance = ops::scale(g, squares, 1 / (attrs.unbiased ? rows - 1 : rows));
  const auto running = [&](int place) { return ops::stop_gradient(g, norm.at(place)); };
  const auto deviation = [&](Value v) { return ops::sqrt(g, ops::add(g, v, eps)); };
  const auto distance = [&](Value a, Value b, double weight) {
    return ops::scale(g, ops::sum(g, ops::square(g, ops::sub(g, a, b))), weight);
  };
  using Out = BatchNormOutput;
  return ops::add(g, distance(mean, running(Out::kNextRunningMean), attrs.mean_penalty),
                  distance(deviation(variance), deviation(running(Out::kNextRunningVar)),
                           attrs.deviation_penalty));
}

// A norm of x with gain and bias. `composed`: the penalties are a loss beside a norm without them.
OpCase op_case(const BatchNormAttrs& attrs, bool composed) {
  OpCase c;
  c.inputs.push_back(random_normal({7, 3}, 1, 2, 3));
  for (std::uint32_t stream : {2, 3}) c.inputs.push_back(random_normal({3}, stream, 0.3));
  c.build = [=](Graph& g, const std::vector<Value>& in) {
    const auto state = [&](std::uint32_t stream) {
      return g.constant(random_normal({3}, stream, 2, 0.3).to(g.type(in[0]).dtype));
    };
    const Value y = ops::batch_norm(g, in[0], {in[1], in[2]}, {state(4), state(5)},
                                    composed ? without_penalties(attrs) : attrs);
    if (!composed) return std::vector{y};
    // The weight of a second output in the loss of a case is undone.
    const Value penalty = penalty_of(g, in[0], y, attrs);
    return std::vector{y, ops::scale(g, penalty, 1 / random_normal({}, 901).at(0))};
  };
  return c;
}

void check_composed(const BatchNormAttrs& attrs) {
  const Results expected = run_reference(op_case(attrs, true)),
                plain = run_reference(op_case(without_penalties(attrs), false));
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const bool is_exact = backend == "reference";
    const Results got = run_case(*make_backend(backend), op_case(attrs, false),
                                 is_exact ? DType::kF64 : DType::kF32);
    for (const char* name : {"y0", "d0", "d1", "d2"}) {
      CAPTURE(std::string(name));
      check_close(got.at(name), expected.at(name), is_exact ? 1e-12 : 4e-6);
    }
    bool differs = false;
    for (std::int64_t e = 0; e < 21; ++e) {
      differs |= std::abs(got.at("d0").at(e) - plain.at("d0").at(e)) > 0.01;
    }
    CHECK(differs);
  }
}

// dx of x = (1, 3, ...) for dy = 0, where the running mean is 5 and the variance 7 before the step.
Tensor by_penalty(const std::string& backend, const Tensor& x, std::vector<std::uint8_t> mask,
                  BatchNormAttrs attrs) {
  attrs.keep = 0.5;
  Tensor dy(DType::kF64, x.shape());
  NormData data{x.clone(), std::move(dy), {}, {}, {}, 0};
  data.state.push_back(f64({1}, {5}));
  data.state.push_back(f64({1}, {7}));
  const auto build = [&](Graph& g, const NormInputs& in, double eps) {
    attrs.eps = eps;
    ops::RunningStatistics running{in.state[0], in.state[1]};
    if (!mask.empty()) running.mask = g.constant(Tensor::of<std::uint8_t>({3}, mask));
    return ops::batch_norm(g, in.x, {in.gain, in.bias}, running, attrs);
  };
  const NormResult result = run_norm(*make_backend(backend), build, data);
  return result.gradients[BatchNormGradient::kDx].clone();
}

}  // namespace

TEST_CASE("batch_norm: a penalty is a loss beside y") {
  check_composed(kPenalties);
  BatchNormAttrs attrs = kPenalties;
  attrs.unbiased = attrs.running_unbiased = true;
  check_composed(attrs);
  attrs.mean_penalty = 0;
  check_composed(attrs);
  attrs = kPenalties;
  attrs.deviation_penalty = 0;
  check_composed(attrs);
}

// The running mean becomes 3.5; the batch's is 2, its deviation 1, and xhat -1 and 1.
TEST_CASE("batch_norm: penalties by hand") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const BatchNormAttrs both{.mean_penalty = 0.5, .deviation_penalty = 3};
    // The running variance becomes 4.
    check_close(by_penalty(backend, f64({2, 1}, {1, 3}), {}, both),
                f64({2, 1}, {-0.75 + 3, -0.75 - 3}), 1e-6);
    check_close(by_penalty(backend, f64({3, 1}, {1, nan, 3}), {1, 0, 1}, both),
                f64({3, 1}, {-0.75 + 3, 0, -0.75 - 3}), 1e-6);
    // The row left out counts as one of the mean: the variance is 2 / 3.
    BatchNormAttrs padded = both;
    padded.padding = ColumnPadding::kPnCode;
    const double s = std::sqrt(2. / 3), tilt = 2 * (s - std::sqrt(3.5 + 1. / 3)) / s;
    check_close(by_penalty(backend, f64({3, 1}, {1, nan, 3}), {1, 0, 1}, padded),
                f64({3, 1}, {-0.75 - tilt, 0, -0.75 + tilt}), 1e-6);
  }
}

TEST_CASE("batch_norm: without a row, and in evaluation, nothing is penalized") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const BatchNormAttrs both{.mean_penalty = 0.5, .deviation_penalty = 3};
    const Tensor x = f64({3, 1}, {1, 3, 8});
    check_close(by_penalty(backend, x, {0, 0, 0}, both), f64({3, 1}, {0, 0, 0}), 0);
    BatchNormAttrs evaluation = both;
    evaluation.training = false;
    check_close(by_penalty(backend, x, {}, evaluation), f64({3, 1}, {0, 0, 0}), 0);
  }
}

TEST_CASE("batch_norm: refusals of penalties") {
  const TensorType x{DType::kF32, {4, 3}}, three{DType::kF32, {3}};
  const auto refused = [&](const BatchNormAttrs& attrs, std::string_view message) {
    check_op_refused(
        {x, three, three},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::batch_norm(g, in[0], {}, {in[1], in[2]}, attrs)};
        },
        "batch_norm", message);
  };
  refused({.mean_penalty = -1}, "mean_penalty: expected >= 0, got -1");
  refused({.deviation_penalty = -0.5}, "deviation_penalty: expected >= 0, got -0.5");
  const auto backward = [&](const std::vector<TensorType>& types, std::string_view message) {
    check_op_refused(
        types,
        [&](Graph& g, const std::vector<Value>& in) {
          const auto given = [&](std::size_t i) { return i < in.size() ? in[i] : Value{}; };
          return std::vector{g.add(kBatchNormBackward,
                                   {in[0], {}, in[1], in[1], in[0], {}, {}, given(2), given(3)},
                                   BatchNormBackwardAttrs{kPenalties, false})};
        },
        "batch_norm_backward", message);
  };
  backward({x, three}, "next_running_mean: expected that of the forward for a penalty, got none");
  backward({x, three, three}, "next_running_var: expected that of the forward for a penalty");
  backward({x, three, three, {DType::kF32, {4}}}, "next_running_var: expected (3), got (4)");
}

}  // namespace keel::test
