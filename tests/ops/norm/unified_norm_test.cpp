// Unified normalization: the promises of un-centred norms, central differences where its gradient
// is exact, masks, the states of the backward, refusals. Several steps are in
// unified_norm_step_test.cpp.
#include "src/ops/norm/unified_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

using Out = UnifiedNormOutput;

// Ring buffers of `v` in each row and of zeros, nu of zeros, and the steps so far beside `v`.
ops::UnifiedNormState unified_state(Graph& g, Value v, const UnifiedNormAttrs& attrs,
                                    std::int32_t step, Value mask = {}) {
  const Tensor ring(g.type(v).dtype, {attrs.m, g.shape(v)[0]});
  return {g.constant(ring.clone()),      g.constant(ring.clone()),    v,
          g.constant(Tensor(g.type(v))), g.constant(i32({}, {step})), mask};
}

// A window of one step: every batch uses its own statistics, and the gradient is exact.
NormSpec one_step_spec(NormLayout layout) {
  const NormBuild build = [](Graph& g, const NormInputs& in, double eps) {
    const UnifiedNormAttrs attrs{.eps = eps, .m = 1, .warmup = 0, .clip_after = 0};
    return ops::unified_norm(g, in.x, {in.gain, in.bias}, unified_state(g, in.state[0], attrs, 5),
                             attrs);
  };
  return {.build = build, .layout = layout, .states = 1, .centred = false};
}

// Compares dx, dgain and dbias of a step with central differences.
void check_exact(const UnifiedNormAttrs& attrs, std::int32_t step, double x2 = 0) {
  for (const Shape& shape : {Shape{7, 3}, Shape{3, 2, 2, 2}}) {
    OpCase c;
    const Shape channels{shape[1]};
    c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
    c.inputs.push_back(random_normal(channels, 2, 1, 0.2));
    c.inputs.push_back(random_normal(channels, 3));
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      const Value one = g.constant(random_normal(channels, 4, 1, 0));
      ops::UnifiedNormState state = unified_state(g, one, attrs, step);
      state.x2 = g.constant(random_normal({attrs.m, channels[0]}, 5, x2, 0));
      return std::vector{ops::unified_norm(g, in[0], {in[1], in[2]}, state, attrs)};
    };
    gradcheck(c);
  }
}

}  // namespace

TEST_CASE("unified_norm: tokens" * doctest::test_suite("slow")) {
  check_norm(one_step_spec(NormLayout::kColumns));
}

TEST_CASE("unified_norm: images" * doctest::test_suite("slow")) {
  check_norm(one_step_spec(NormLayout::kImages));
}
TEST_CASE("unified_norm: thumbnails" * doctest::test_suite("slow")) {
  check_norm(one_step_spec(NormLayout::kThumbnails));
}

TEST_CASE("unified_norm: where the batch's own statistics are used the gradient is exact") {
  check_exact({.eps = 1e-2, .m = 1, .warmup = 0, .clip_after = 0}, 98);
  // Before the averages begin, nu' has a part of the batch's mean of g z, with keep = 0 all of it.
  check_exact({.eps = 1e-2, .keep = 0, .m = 4, .warmup = 100}, 98);
  // Roots without a variance allow no gap: the batch is an outlier.
  check_exact({.eps = 1e-2, .m = 4, .warmup = 0, .clip_after = 0}, 98, 1e-3);
}

TEST_CASE("unified_norm: phases") {
  const auto check = [](const UnifiedNormAttrs& attrs, std::int32_t step,
                        const MabnPhase& expected) {
    const MabnPhase phase = attrs.phase(step);
    CAPTURE(step);
    CHECK(phase.row == expected.row);
    CHECK(phase.averages == expected.averages);
    CHECK(phase.clips == expected.clips);
  };
  check({}, 0, {1, false, false});
  check({}, 3998, {3, false, false});
  check({}, 3999, {0, true, false});
  check({}, 4000, {1, true, true});
  check({.warmup = 10}, 999, {0, true, false});
  check({.warmup = 10}, 1000, {1, true, true});
  check({.warmup = 0, .clip_after = 0}, 3, {0, false, true});
  check({.warmup = 0, .clip_after = 0}, 4, {1, true, true});
}

// P (kept rows, rows) takes the kept rows of x; its transpose puts them back and 0 elsewhere.
TEST_CASE("unified_norm: rows that a mask leaves out might as well not be there") {
  for (const bool training : {true, false}) {
    const UnifiedNormAttrs attrs{
        .m = 2, .warmup = 0, .clip_after = 0, .filter = false, .training = training};
    const auto run = [&](const std::string& backend, bool with_mask) {
      OpCase c;
      c.inputs.push_back(random_normal({5, 3}, 1, 3, 2));
      c.inputs.push_back(random_normal({3}, 2));
      c.inputs.push_back(random_normal({3}, 3));
      c.build = [&](Graph& g, const std::vector<Value>& in) {
        const auto constant = [&](const Tensor& t) {
          return g.constant(t.to(g.type(in[0]).dtype));
        };
        const Value v = constant(f64({3}, {1, 2, 3}));
        const Value mask = g.constant(Tensor::of<std::uint8_t>({5}, {1, 0, 1, 1, 0}));
        const Value p = constant(f64({3, 5}, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0}));
        ops::UnifiedNormState state = unified_state(g, v, attrs, 5, with_mask ? mask : Value{});
        state.x2 = constant(f64({2, 3}, {1, 2, 3, 4, 5, 6}));
        const Value x = with_mask ? in[0] : ops::matmul(g, p, in[0]);
        const Value y = ops::unified_norm(g, x, {in[1], in[2]}, state, attrs);
        std::vector<Value> outputs{with_mask ? y : ops::matmul(g, p, y, {.transpose_a = true})};
        for (const int port : {int(Out::kNextX2), int(Out::kNextV)}) {
          if (training) outputs.push_back(ops::stop_gradient(g, y.at(port)));
        }
        return outputs;
      };
      return run_case(*make_backend(backend), c, DType::kF32);
    };
    for (const std::string& backend : tested_backends()) {
      CAPTURE(backend);
      const Results got = run(backend, true);
      for (const auto& [name, value] : run(backend, false)) {
        CAPTURE(name);
        check_close(got.at(name), value, 1e-6);
      }
    }
  }
}

TEST_CASE("unified_norm: a batch without a row leaves the states that a step writes over") {
  for (const std::string& name : tested_backends()) {
    for (const std::int64_t m : {1, 2}) {
      CAPTURE(name);
      Graph g;
      const auto state = [&](const char* label, const Shape& shape, float value) {
        return g.state(label, {DType::kF32, shape},
                       [=](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); });
      };
      const auto nine = [](Tensor& t, const Philox&) { t.as<std::int32_t>()[0] = 9; };
      const ops::UnifiedNormState states{state("x2", {m, 1}, 5),
                                         state("gz", {m, 1}, 7),
                                         state("v", {1}, 3),
                                         state("nu", {1}, 2),
                                         g.state("step", {DType::kI32, {}}, nine),
                                         g.constant(Tensor(DType::kU8, {4}))};
      const Value x = g.constant(random_normal({4, 1}, 1).to(DType::kF32));
      const Value y = ops::unified_norm(g, x, {}, states, {.m = m, .warmup = 0});
      const Gradients gradients = differentiate(g, ops::sum(g, y), {&x, 1});
      for (const Update& update : gradients.states) g.mark_update(update.leaf, update.next);
      g.mark_update(states.x2, y.at(Out::kNextX2));
      g.mark_update(states.v, y.at(Out::kNextV));
      g.mark_update(states.step, y.at(Out::kNextStep));
      g.mark_output("y", y);
      g.mark_output("rstd", y.at(Out::kRstd));
      const auto backend = make_backend(name);
      Variables variables(*backend, 1);
      Program program(*backend, variables, g);
      program.run();
      check_close(program.fetch("y"), Tensor(DType::kF32, {4, 1}), 0);
      CHECK(program.fetch("rstd").at(0) == doctest::Approx(1 / std::sqrt(3 + 1e-5)));
      for (std::int64_t row = 0; row < m; ++row) {
        CHECK(variables.read("x2").at(row) == 5);
        CHECK(variables.read("gz").at(row) == 7);
      }
      CHECK(variables.read("v").at(0) == 3);
      CHECK(variables.read("nu").at(0) == 2);
      CHECK(variables.read("step").at(0) == 9);
    }
  }
}

// A constant is never written over, so gz' lies apart from it.
TEST_CASE("unified_norm: the backward hands on the rows of gz that are not this step's") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    OpCase c;
    c.inputs.push_back(f64({2, 1}, {3, 1}));
    c.build = [](Graph& g, const std::vector<Value>& in) {
      const UnifiedNormAttrs attrs{.eps = 0};
      const Value one = g.constant(f64({1}, {1}).to(g.type(in[0]).dtype));
      ops::UnifiedNormState state = unified_state(g, one, attrs, 0);
      state.gz = g.constant(f64({4, 1}, {7, 8, 9, 10}).to(g.type(in[0]).dtype));
      const Value y = ops::unified_norm(g, in[0], {}, state, attrs);
      return std::vector{
          gradient(g, ops::sum(g, y), {in.data(), 1})[0].at(UnifiedNormGradient::kNextGz)};
    };
    c.gradients = false;
    const Tensor gz = run_case(*make_backend(backend), c, DType::kF32).at("y0").clone();
    for (const int row : {0, 2, 3}) CHECK(gz.at(row) == 7 + row);
    CHECK(gz.at(1) == doctest::Approx(2 / std::sqrt(5.)));
  }
}

struct UnifiedLeaves {
  Graph g;
  Value x = g.input("x", {DType::kF32, {4, 3}});
  ops::UnifiedNormState all{state("x2", {2, 3}),
                            state("gz", {2, 3}),
                            state("v", {3}),
                            state("nu", {3}),
                            g.state("step", {DType::kI32, {}}, nullptr),
                            Value{}};

  Value state(const char* name, const Shape& shape) {
    return g.state(name, {DType::kF32, shape}, nullptr);
  }
};

TEST_CASE("unified_norm: the backward reports gz and nu, and marks nothing") {
  UnifiedLeaves s;
  const Value loss = ops::sum(s.g, ops::unified_norm(s.g, s.x, {}, s.all, {.m = 2}));
  const Gradients gradients = differentiate(s.g, loss, {&s.x, 1});
  REQUIRE(gradients.states.size() == 2);
  for (const Update& update : gradients.states) {
    const bool is_gz = update.leaf == s.all.gz;
    CHECK((is_gz || update.leaf == s.all.nu));
    const int port = is_gz ? UnifiedNormGradient::kNextGz : UnifiedNormGradient::kNextNu;
    CHECK(update.next == gradients.of[0].at(port));
  }
  CHECK(s.g.updates().empty());
}

TEST_CASE("unified_norm: nodes that read one state hand it on, from the last to the first") {
  UnifiedLeaves s;
  const Value other = s.g.input("other", s.g.type(s.x));
  const Value first = ops::unified_norm(s.g, s.x, {}, s.all, {.m = 2});
  const Value last = ops::unified_norm(s.g, other, {}, s.all, {.m = 2});
  const Value wrt[] = {s.x, other};
  const Gradients d = differentiate(s.g, ops::sum(s.g, ops::add(s.g, first, last)), wrt);
  using BackIn = UnifiedNormBackwardInput;
  CHECK(s.g.node(d.of[1]).inputs[BackIn::kGz] == s.all.gz);
  CHECK(s.g.node(d.of[1]).inputs[BackIn::kNu] == s.all.nu);
  CHECK(s.g.node(d.of[0]).inputs[BackIn::kGz] == d.of[1].at(UnifiedNormGradient::kNextGz));
  CHECK(s.g.node(d.of[0]).inputs[BackIn::kNu] == d.of[1].at(UnifiedNormGradient::kNextNu));
}

TEST_CASE("unified_norm: refusals") {
  struct Types {
    TensorType x{DType::kF32, {4, 3}}, gain{DType::kF32, {3}}, bias = gain;
    TensorType x2{DType::kF32, {2, 3}}, gz = x2, v = gain, nu = gain, step{DType::kI32, {}};
    TensorType mask{DType::kU8, {4}};
  };
  const auto refused = [](const Types& t, UnifiedNormAttrs attrs, std::string_view message) {
    if (attrs.m == 4) attrs.m = 2;
    check_op_refused(
        {t.x, t.gain, t.bias, t.x2, t.gz, t.v, t.nu, t.step, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::unified_norm(g, in[0], {in[1], in[2]},
                                               {in[3], in[4], in[5], in[6], in[7], in[8]}, attrs)};
        },
        "unified_norm", message);
  };
  const auto f32 = [](const Shape& shape) { return TensorType{DType::kF32, shape}; };
  refused({.x = f32({3})}, {}, "x: expected (rows, channels) or (n, channels, h, w), got (3)");
  refused({.x = f32({4, 0})}, {}, "x: expected at least one feature, got (4, 0)");
  refused({.x = f32({0, 3})}, {}, "x: expected at least one element a feature, got (0, 3)");
  refused({.gain = f32({4})}, {}, "gain: expected (3), got (4)");
  refused({.bias = f32({4})}, {}, "bias: expected (3), got (4)");
  refused({.x2 = f32({3, 3})}, {}, "x2: expected (2, 3), got (3, 3)");
  refused({.gz = f32({2, 4})}, {}, "gz: expected (2, 3), got (2, 4)");
  refused({.v = f32({1})}, {}, "v: expected (3), got (1)");
  refused({.nu = f32({2})}, {}, "nu: expected (3), got (2)");
  refused({.step = f32({})}, {}, "step: expected i32, got f32");
  refused({.step = {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({.mask = {DType::kU8, {3}}}, {}, "mask: expected (4), got (3)");
  refused({.x = f32({4, 3, 1, 1})}, {}, "mask: expected none for images, got (4)");
  refused({}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({}, {.keep = 1.5}, "keep: expected in [0, 1], got 1.5");
  refused({}, {.clip = 0.5}, "clip: expected >= 1, got 0.5");
  refused({}, {.m = 0}, "m: expected a power of two, got 0");
  refused({}, {.m = 3}, "m: expected a power of two, got 3");
}

}  // namespace keel::test
