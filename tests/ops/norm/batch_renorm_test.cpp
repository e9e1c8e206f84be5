// Batch renormalization: the promises of every norm, worked examples, the running statistics and
// their schedule, evaluation, masks, refusals.
#include "src/ops/norm/batch_renorm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"
#include "tests/support/norm_golden.h"
#include "tests/support/norm_template.h"

namespace keel::test {
namespace {

const BatchRenormAttrs kScaled{.r_max = 3, .d_max = 0}, kRelaxed{.r_max = 3, .d_max = 5};

Value zero_step(Graph& g) { return g.constant(i32({}, {0})); }

NormBuild batch_renorm(BatchRenormAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::batch_renorm(g, in.x, {in.gain, in.bias},
                             {in.state[0], in.state[1], zero_step(g), {}}, attrs);
  };
}

// The same from elementary ops on (outer, channels, inner), with r and d behind stop_gradient.
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
    if (in.gain) y = ops::mul(g, y, of_channel(in.gain));
    if (in.bias) y = ops::add(g, y, of_channel(in.bias));
    return ops::reshape(g, y, g.shape(in.x));
  };
}

std::vector<std::string> backends() { return {"reference", default_backend()}; }

void check_near(const Tensor& got, const Tensor& expected) {
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got.at(i) - expected.at(i)) <= 1e-5);
  }
}

void check_example(double r_max, double d_max, std::string_view section) {
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const auto input = [](std::string_view key) { return golden("inputs", key); };
    NormData data{input("x"), input("dy"), input("gamma"), input("beta"), {}, 1e-5};
    data.state.push_back(f64({6}, {0.2, 0.1, -0.1, 0.5, 0, 0.3}));
    data.state.push_back(f64({6}, {1, 0.9, 1.2, 1.5, 0.4, 0.8}));
    const NormResult result =
        run_norm(*make_backend(backend), batch_renorm({.r_max = r_max, .d_max = d_max}), data);
    check_near(result.outputs[0], golden(section, "y"));
    check_near(result.outputs[3], golden(section, "r"));
    check_near(result.outputs[4], golden(section, "d"));
    check_near(result.outputs[5], golden(section, "mu_new"));
    check_near(result.outputs[6], golden(section, "sigma_new"));
    check_near(result.gradients[0], golden(section, "dx"));
    check_near(result.gradients[1], golden(section, "dgamma"));
  }
}

// One step on x with gain 1.5, bias 0.25, running mean 0.5 and std 2: y0 = y, y1 = mean',
// y2 = std', y3 = step', and the gradients d0 of x, d2 of gain, d3 of bias.
struct Step {
  Tensor x;
  BatchRenormAttrs attrs;
  std::int32_t step = 0;
  std::vector<std::uint8_t> mask = {};
  std::optional<Tensor> choice = {};  // a matrix: y = choice^T norm(choice x)

  Results run(const std::string& backend) const {
    OpCase c;
    const std::int64_t channels = x.shape()[1];
    c.inputs.push_back(x.clone());
    c.inputs.push_back(i32({}, {step}));
    for (double v : {1.5, 0.25}) c.inputs.push_back(random_normal({channels}, 2, v, 0));
    if (!mask.empty()) {
      c.inputs.push_back(Tensor::of<std::uint8_t>({std::int64_t(mask.size())}, mask));
    }
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      const auto state = [&](double v) {
        return g.constant(random_normal({channels}, 2, v, 0).to(g.type(in[0]).dtype));
      };
      Value p, x_of_norm = in[0];
      if (choice) {
        p = g.constant(choice->to(g.type(in[0]).dtype));
        x_of_norm = ops::matmul(g, p, in[0]);
      }
      const Value mask_of_norm = in.size() > 4 ? in[4] : Value{};
      const Value y = ops::batch_renorm(g, x_of_norm, {in[2], in[3]},
                                        {state(0.5), state(2), in[1], mask_of_norm}, attrs);
      const Value shown = choice ? ops::matmul(g, p, y, {.transpose_a = true}) : y;
      if (!attrs.training) return std::vector{shown};
      return std::vector{shown, ops::stop_gradient(g, y.at(5)), ops::stop_gradient(g, y.at(6)),
                         y.at(7)};
    };
    return run_case(*make_backend(backend), c, DType::kF32);
  }
};

}  // namespace

// With d = 0 a constant channel gives the bias.
TEST_CASE("batch_renorm: what every norm promises, tokens") {
  check_norm({batch_renorm(kScaled), NormLayout::kColumns, 2, composed(kScaled)});
}

TEST_CASE("batch_renorm: what every norm promises, images") {
  check_norm({batch_renorm(kScaled), NormLayout::kImages, 2, composed(kScaled)});
}

TEST_CASE("batch_renorm: what every norm promises, scaled and moved") {
  check_norm({batch_renorm(kRelaxed), NormLayout::kColumns, 2, composed(kRelaxed), 1, false, true});
}

TEST_CASE("batch_renorm: what every norm promises, evaluation") {
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

// What is not clipped is normalized by the running statistics, as in evaluation.
TEST_CASE("batch_renorm: without clipping training gives what evaluation gives") {
  for (const std::string& backend : backends()) {
    const Tensor x = random_normal({40, 3}, 1, 1, 2);
    const Results training = Step{x.clone(), kRelaxed}.run(backend);
    const Results evaluation = Step{x.clone(), {.training = false}}.run(backend);
    check_close(training.at("y0"), evaluation.at("y0"), 1e-5);
  }
}

// Mean 4 and s = 2 (variance 3, eps 1), before them 0.5 and 2.
TEST_CASE("batch_renorm: the state is read before the step and written after it") {
  for (const std::string& backend : backends()) {
    const Tensor x = f64({4, 1}, {4 - 1, 4 + 1, 4 - std::sqrt(5), 4 + std::sqrt(5)});
    const BatchRenormAttrs attrs{.eps = 1, .rate = 0.25, .d_start = 6, .d_end = 8};
    const Results before = Step{x.clone(), attrs, 6}.run(backend);
    CHECK(before.at("y0").at(0) == doctest::Approx(1.5 * -0.5 + 0.25));
    CHECK(before.at("y1").at(0) == doctest::Approx(0.75 * 0.5 + 0.25 * 4));
    CHECK(before.at("y2").at(0) == doctest::Approx(2));
    CHECK(before.at("y3").at(0) == 7);
    const Results after = Step{x.clone(), attrs, 8}.run(backend);
    CHECK(after.at("y0").at(0) == doctest::Approx(1.5 * (-0.5 + 1.75) + 0.25));
    CHECK(after.at("y3").at(0) == 9);
  }
}

// P (kept rows, rows) takes the kept rows of x; its transpose puts them back and 0 elsewhere.
TEST_CASE("batch_renorm: rows that a mask leaves out might as well not be there") {
  const Step masked{random_normal({5, 3}, 1, 3, 2), kRelaxed, 0, {1, 0, 1, 1, 0}};
  Step chosen{masked.x.clone(), kRelaxed};
  chosen.choice = f64({3, 5}, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0});
  for (const std::string& backend : backends()) {
    CAPTURE(backend);
    const Results got = masked.run(backend), expected = chosen.run(backend);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      check_close(got.at(name), value, 1e-6);
    }
  }
}

// Several panels, several blocks; long runs, short ones, and blocks without a row; NaN is not read.
TEST_CASE("batch_renorm: masks of many rows, against the reference") {
  for (const auto& [rows, channels] : {std::pair{300, 70}, {4099, 65}}) {
    CAPTURE(rows);
    Step step{random_normal({rows, channels}, 1, 3, 2), kRelaxed};
    for (int row = 0; row < rows; ++row) {
      step.mask.push_back(row % 7 != 3 && row % 100 < 80 && (row < 2000 || row > 4000));
      if (step.mask.back() == 0) step.x.as<double>()[std::size_t(row * channels)] = NAN;
    }
    const Results got = step.run(default_backend()), expected = step.run("reference");
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      check_close(got.at(name), value, 2e-6);
    }
  }
}

TEST_CASE("batch_renorm: a batch without a row that is kept changes nothing") {
  for (const std::string& backend : backends()) {
    const Results results = Step{random_normal({3, 2}, 1), kRelaxed, 4, {0, 0, 0}}.run(backend);
    for (const char* name : {"y0", "d0"})
      check_close(results.at(name), f64({3, 2}, {0, 0, 0, 0, 0, 0}), 0);
    check_close(results.at("y1"), f64({2}, {0.5, 0.5}), 0);
    check_close(results.at("y2"), f64({2}, {2, 2}), 0);
    CHECK(results.at("y3").at(0) == 4);
    for (const char* name : {"d2", "d3"}) check_close(results.at(name), f64({2}, {0, 0}), 0);
  }
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
