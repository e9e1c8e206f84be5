// Batch renormalization: the promises of every norm, worked examples, the schedule of the limits,
// evaluation, refusals. The running statistics and masks are in batch_renorm_step_test.cpp.
#include "src/ops/norm/batch_renorm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/sizes.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/norm_golden.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

const BatchRenormAttrs kScaled{.r_max = 3, .d_max = 0}, kScaledAndMoved{.r_max = 3, .d_max = 5};

Value zero_step(Graph& g) { return g.constant(i32({}, {0})); }

NormBuild batch_renorm(BatchRenormAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::batch_renorm(g, in.x, {in.gain, in.bias},
                             {in.state[0], in.state[1], zero_step(g), {}}, attrs);
  };
}

// The same from elementary ops on (outer, channels, inner), with r and d after stop_gradient.
NormBuild composed(const BatchRenormAttrs& attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) {
    const auto number = [&](double v) { return g.constant(v, g.type(in.x).dtype); };
    const auto clip = [&](Value v, double low, double high) {
      return ops::stop_gradient(g, ops::maximum(g, ops::minimum(g, v, number(high)), number(low)));
    };
    const ColumnSizes sizes = column_sizes(g.shape(in.x));
    const auto of_channel = [&](Value v) { return ops::reshape(g, v, {sizes.channels, 1}); };
    const auto mean_of = [&](Value v) { return ops::mean(g, v, {0, 2}, true); };
    const Value x = ops::reshape(g, in.x, {sizes.outer, sizes.channels, sizes.inner});
    const Value running_mean = of_channel(in.state[0]), running_std = of_channel(in.state[1]);
    Value y = ops::div(g, ops::sub(g, x, running_mean), running_std);
    if (attrs.training) {
      const Value mean = mean_of(x), centred = ops::sub(g, x, mean);
      const Value s = ops::sqrt(g, ops::add(g, mean_of(ops::square(g, centred)), number(eps)));
      const Value moved = ops::div(g, ops::sub(g, mean, running_mean), running_std);
      const Value r = clip(ops::div(g, s, running_std), 1 / attrs.r_max, attrs.r_max);
      y = ops::add(g, ops::mul(g, ops::div(g, centred, s), r),
                   clip(moved, -attrs.d_max, attrs.d_max));
    }
    if (in.gain.valid()) y = ops::mul(g, y, of_channel(in.gain));
    if (in.bias.valid()) y = ops::add(g, y, of_channel(in.bias));
    return ops::reshape(g, y, g.shape(in.x));
  };
}

void check_example(double r_max, double d_max, std::string_view section) {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const auto input = [](std::string_view key) { return golden("inputs", key); };
    NormData data{input("x"), input("dy"), input("gamma"), input("beta"), {}, 1e-5};
    data.state.push_back(f64({6}, {0.2, 0.1, -0.1, 0.5, 0, 0.3}));
    data.state.push_back(f64({6}, {1, 0.9, 1.2, 1.5, 0.4, 0.8}));
    const NormResult result =
        run_norm(*make_backend(backend), batch_renorm({.r_max = r_max, .d_max = d_max}), data);
    check_near(result.outputs[BatchRenormOutput::kY], golden(section, "y"));
    check_near(result.outputs[BatchRenormOutput::kR], golden(section, "r"));
    check_near(result.outputs[BatchRenormOutput::kD], golden(section, "d"));
    check_near(result.outputs[BatchRenormOutput::kNextRunningMean], golden(section, "mu_new"));
    check_near(result.outputs[BatchRenormOutput::kNextRunningStd], golden(section, "sigma_new"));
    check_near(result.gradients[BatchRenormGradient::kDx], golden(section, "dx"));
    check_near(result.gradients[BatchRenormGradient::kDgain], golden(section, "dgamma"));
  }
}

}  // namespace

// With d = 0 a constant channel gives the bias.
TEST_CASE("batch_renorm: what every norm promises, tokens" * doctest::test_suite("slow")) {
  check_norm({batch_renorm(kScaled), NormLayout::kColumns, 2, composed(kScaled)});
}

TEST_CASE("batch_renorm: what every norm promises, images" * doctest::test_suite("slow")) {
  check_norm({batch_renorm(kScaled), NormLayout::kImages, 2, composed(kScaled)});
  check_norm({batch_renorm(kScaled), NormLayout::kThumbnails, 2, composed(kScaled)});
}

TEST_CASE("batch_renorm: what every norm promises, scaled and moved" *
          doctest::test_suite("slow")) {
  check_norm({batch_renorm(kScaledAndMoved), NormLayout::kColumns, 2, composed(kScaledAndMoved), 1,
              false, true});
}

TEST_CASE("batch_renorm: what every norm promises, evaluation" * doctest::test_suite("slow")) {
  const BatchRenormAttrs attrs{.training = false};
  check_norm({batch_renorm(attrs), NormLayout::kColumns, 2, composed(attrs), 1, false});
}

TEST_CASE("batch_renorm: worked examples") {
  check_example(1, 0, "BatchRenorm rmax=1 dmax=0");
  check_example(3, 5, "BatchRenorm rmax=3 dmax=5");
}

TEST_CASE("batch_renorm: the limits are relaxed step by step") {
  const auto check = [](const BatchRenormAttrs& attrs, std::int32_t step, double r, double d) {
    CAPTURE(step);
    CHECK(renorm_limits(attrs, step).r_max == doctest::Approx(r));
    CHECK(renorm_limits(attrs, step).d_max == doctest::Approx(d));
  };
  check({}, 0, 1, 0);
  check({}, 5000, 1, 0);
  check({}, 15000, 1 + 2. * 10 / 35, 2.5);
  check({}, 25000, 1 + 2. * 20 / 35, 5);
  check({}, 40000, 3, 5);
  check({}, 1 << 30, 3, 5);
  check({.r_max = 2, .d_max = 1}, 0, 2, 1);
  check({.d_max = 0}, 40000, 3, 0);
  check({.r_start = 7, .r_end = 7, .d_start = 0, .d_end = 0}, 6, 1, 5);
  check({.r_start = 7, .r_end = 7, .d_start = 0, .d_end = 0}, 7, 3, 5);
}

TEST_CASE("batch_renorm: refusals") {
  struct Types {
    TensorType x{DType::kF32, {4, 3}}, gain{DType::kF32, {3}}, bias = gain, mean = gain, std = gain;
    TensorType step{DType::kI32, {}}, mask{DType::kU8, {4}};
  };
  const auto refused = [](const Types& t, const BatchRenormAttrs& attrs, std::string_view message) {
    check_op_refused(
        {t.x, t.gain, t.bias, t.mean, t.std, t.step, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{
              ops::batch_renorm(g, in[0], {in[1], in[2]}, {in[3], in[4], in[5], in[6]}, attrs)};
        },
        "batch_renorm", message);
  };
  const auto f32 = [](const Shape& shape) { return TensorType{DType::kF32, shape}; };
  refused({.x = f32({3})}, {}, "x: expected (rows, channels) or (n, channels, h, w), got (3)");
  refused({.x = {DType::kI32, {4, 3}}}, {}, "x: expected a floating type, got i32");
  refused({.x = f32({0, 3})}, {}, "x: expected at least one element a feature, got (0, 3)");
  refused({.gain = f32({4})}, {}, "gain: expected (3), got (4)");
  refused({.bias = f32({4})}, {}, "bias: expected (3), got (4)");
  refused({.mean = f32({1})}, {}, "running_mean: expected (3), got (1)");
  refused({.std = f32({3, 1})}, {}, "running_std: expected (3), got (3, 1)");
  refused({.step = f32({})}, {}, "step: expected i32, got f32");
  refused({.step = {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({.mask = {DType::kU8, {3}}}, {}, "mask: expected (4), got (3)");
  refused({.mask = {DType::kI32, {4}}}, {}, "mask: expected u8, got i32");
  refused({.x = f32({4, 3, 1, 1})}, {}, "mask: expected none for images, got (4)");
  refused({}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({}, {.rate = 1.5}, "rate: expected in [0, 1], got 1.5");
  refused({}, {.rate = -0.5}, "rate: expected in [0, 1], got -0.5");
  refused({}, {.r_max = 0.5}, "r_max: expected >= 1, or < 0 for the schedule, got 0.5");
  refused({}, {.r_max_limit = 0.5}, "r_max_limit: expected >= 1, got 0.5");
  refused({}, {.d_max_limit = -1}, "d_max_limit: expected >= 0, got -1");
}

}  // namespace keel::test
