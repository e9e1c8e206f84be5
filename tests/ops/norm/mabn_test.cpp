// Moving average batch norm: the promises of un-centred norms, central differences in its first
// phase, masks, the update of gz, refusals. Several steps are in mabn_step_test.cpp.
#include "src/ops/norm/mabn.h"

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

// Ring buffers of zeros and the steps so far beside `v`.
ops::MabnState state_of(Graph& g, Value v, const MabnAttrs& attrs, std::int32_t step,
                        Value mask = {}) {
  const Tensor ring(g.type(v).dtype, {attrs.m, g.shape(v)[0]});
  return {g.constant(ring.clone()), g.constant(ring.clone()), v, g.constant(i32({}, {step})), mask};
}

// One step from the start; its attributes must not make it average.
NormBuild first_step(MabnAttrs attrs) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::mabn(g, in.x, {in.gain, in.bias}, state_of(g, in.state[0], attrs, 0), attrs);
  };
}

NormSpec first_spec(NormLayout layout) {
  return {.build = first_step({.m = 1}), .layout = layout, .states = 1, .centred = false};
}

}  // namespace

TEST_CASE("mabn: tokens" * doctest::test_suite("slow")) {
  check_norm(first_spec(NormLayout::kColumns));
}

TEST_CASE("mabn: images" * doctest::test_suite("slow")) {
  check_norm(first_spec(NormLayout::kImages));
}
TEST_CASE("mabn: thumbnails" * doctest::test_suite("slow")) {
  check_norm(first_spec(NormLayout::kThumbnails));
}

TEST_CASE("mabn: in its first phase the gradient is exact") {
  for (const Shape& shape : {Shape{7, 3}, Shape{3, 2, 2, 2}}) {
    OpCase c;
    const Shape channels{shape[1]};
    c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
    c.inputs.push_back(random_normal(channels, 2, 1, 0.2));
    c.inputs.push_back(random_normal(channels, 3));
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      const Value one = g.constant(random_normal(channels, 4, 1, 0));
      return std::vector{ops::mabn(g, in[0], {in[1], in[2]}, state_of(g, one, {.m = 4}, 98),
                                   {.eps = 1e-2, .m = 4})};
    };
    gradcheck(c);
  }
}

TEST_CASE("mabn: averages whose sum is beyond the floats") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    OpCase c;
    c.inputs.push_back(f64({2, 1}, {1.2e19, -1.2e19}));
    c.build = [](Graph& g, const std::vector<Value>& in) {
      const auto filled = [&](const Shape& shape, double value) {
        Tensor t(DType::kF64, shape);
        std::ranges::fill(t.as<double>(), value);
        return g.constant(t.to(g.type(in[0]).dtype));
      };
      const ops::MabnState state{filled({6, 1}, 1.44e38),
                                 filled({6, 1}, 0),
                                 filled({1}, 1.44e38),
                                 g.constant(i32({}, {199})),
                                 {}};
      const Value y = ops::mabn(g, in[0], {}, state, {.m = 6});
      return std::vector{y, y.at(MabnOutput::kNextV)};
    };
    c.gradients = false;
    const Results results = run_case(*make_backend(backend), c, DType::kF32);
    CHECK(results.at("y0").at(0) == doctest::Approx(1).epsilon(1e-6));
    CHECK(results.at("y1").at(0) == doctest::Approx(1.44e38).epsilon(1e-6));
  }
}

TEST_CASE("mabn: phases") {
  const auto check = [](const MabnAttrs& attrs, std::int32_t step, const MabnPhase& expected) {
    const MabnPhase phase = mabn_phase(attrs, step);
    CAPTURE(step);
    CHECK(phase.row == expected.row);
    CHECK(phase.averages == expected.averages);
    CHECK(phase.clips == expected.clips);
  };
  check({}, 0, {1, false, false});
  check({}, 15, {0, false, false});
  check({}, -2, {15, false, false});
  check({}, 98, {99 % 16, false, false});
  check({}, 99, {100 % 16, true, false});
  check({}, 999, {1000 % 16, true, false});
  check({}, 1000, {1001 % 16, true, true});
  check({.m = 4, .warmup = 0, .clip_after = 0}, 3, {0, false, true});
  check({.m = 4, .warmup = 0, .clip_after = 0}, 4, {1, true, true});
  check({.warmup = 2000}, 1999, {0, true, false});
  check({.warmup = 2000}, 2000, {1, true, true});
}

// P (kept rows, rows) takes the kept rows of x; its transpose puts them back and 0 elsewhere.
TEST_CASE("mabn: rows that a mask leaves out might as well not be there") {
  for (bool training : {true, false}) {
    const MabnAttrs attrs{.m = 2, .warmup = 0, .clip_after = 0, .training = training};
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
        const Value y = ops::mabn(g, with_mask ? in[0] : ops::matmul(g, p, in[0]), {in[1], in[2]},
                                  state_of(g, v, attrs, 5, with_mask ? mask : Value{}), attrs);
        std::vector<Value> outputs{with_mask ? y : ops::matmul(g, p, y, {.transpose_a = true})};
        for (int port : {3, 4}) {
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

TEST_CASE("mabn: a batch without a row that is kept changes nothing") {
  for (const std::string& backend : tested_backends()) {
    OpCase c;
    c.inputs.push_back(random_normal({3, 1}, 1));
    c.inputs.push_back(Tensor::of<std::uint8_t>({3}, {0, 0, 0}));
    c.build = [](Graph& g, const std::vector<Value>& in) {
      const auto row = [&](const Tensor& t) { return g.constant(t.to(g.type(in[0]).dtype)); };
      const ops::MabnState state{row(f64({2, 1}, {5, 6})), row(f64({2, 1}, {7, 8})),
                                 row(f64({1}, {2})), g.constant(i32({}, {9})), in[1]};
      const Value y = ops::mabn(g, in[0], {}, state, {.m = 2});
      return std::vector{y, y.at(MabnOutput::kNextX2), y.at(MabnOutput::kNextV),
                         y.at(MabnOutput::kNextStep)};
    };
    c.gradients = false;
    const Results results = run_case(*make_backend(backend), c, DType::kF32);
    for (std::int64_t i = 0; i < 3; ++i) CHECK(results.at("y0").at(i) == 0);
    check_close(results.at("y1"), f64({2, 1}, {5, 6}), 0);
    CHECK(results.at("y2").at(0) == 2);
    CHECK(results.at("y3").at(0) == 9);
  }
}

TEST_CASE("mabn: a batch without a row leaves the states that a step writes over") {
  for (const std::string& name : tested_backends()) {
    CAPTURE(name);
    Graph g;
    const auto state = [&](const char* label, const Shape& shape, float value) {
      return g.state(label, {DType::kF32, shape},
                     [=](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); });
    };
    const auto nine = [](Tensor& t, const Philox&) { t.as<std::int32_t>()[0] = 9; };
    const ops::MabnState states{state("x2", {2, 1}, 5), state("gz", {2, 1}, 7), state("v", {1}, 3),
                                g.state("step", {DType::kI32, {}}, nine),
                                g.constant(Tensor(DType::kU8, {4}))};
    const Value x = g.constant(random_normal({4, 1}, 1).to(DType::kF32));
    const Value y = ops::mabn(g, x, {}, states, {.m = 2, .warmup = 0});
    const Gradients gradients = differentiate(g, ops::sum(g, y), {&x, 1});
    g.mark_update(states.gz, gradients.states.at(0).next);
    g.mark_update(states.x2, y.at(MabnOutput::kNextX2));
    g.mark_update(states.v, y.at(MabnOutput::kNextV));
    g.mark_update(states.step, y.at(MabnOutput::kNextStep));
    const auto backend = make_backend(name);
    Variables variables(*backend, 1);
    Program program(*backend, variables, g);
    CHECK(program.plan().copies.size() == 1);
    program.run();
    check_close(variables.read("x2"), f64({2, 1}, {5, 5}), 0);
    check_close(variables.read("gz"), f64({2, 1}, {7, 7}), 0);
    CHECK(variables.read("v").at(0) == 3);
    CHECK(variables.read("step").at(0) == 9);
  }
}

// A constant is never written over, so gz' lies apart from it.
TEST_CASE("mabn: the backward hands on the rows of gz that are not this step's") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    OpCase c;
    c.inputs.push_back(f64({2, 1}, {3, 1}));
    c.build = [](Graph& g, const std::vector<Value>& in) {
      const auto constant = [&](const Tensor& t) { return g.constant(t.to(g.type(in[0]).dtype)); };
      const ops::MabnState state{constant(f64({3, 1}, {1, 1, 1})),
                                 constant(f64({3, 1}, {7, 8, 9})),
                                 constant(f64({1}, {1})),
                                 g.constant(i32({}, {0})),
                                 {}};
      const Value y = ops::mabn(g, in[0], {}, state, {.eps = 0, .m = 3});
      return std::vector{gradient(g, ops::sum(g, y), {in.data(), 1})[0].at(3)};
    };
    c.gradients = false;
    const Tensor gz = run_case(*make_backend(backend), c, DType::kF32).at("y0").clone();
    CHECK(gz.at(0) == 7);
    CHECK(gz.at(1) == doctest::Approx(2 / std::sqrt(5.)));
    CHECK(gz.at(2) == 9);
  }
}

struct States {
  Graph g;
  Value x = g.input("x", {DType::kF32, {4, 3}});
  ops::MabnState all{state("x2", {2, 3}), state("gz", {2, 3}), state("v", {3}),
                     g.state("step", {DType::kI32, {}}, nullptr), Value{}};

  Value state(const char* name, const Shape& shape) {
    return g.state(name, {DType::kF32, shape}, nullptr);
  }
};

TEST_CASE("mabn: the backward reports gz, marks nothing and can be built twice") {
  States s;
  const Value loss = ops::sum(s.g, ops::mabn(s.g, s.x, {}, s.all, {.m = 2}));
  for (int time = 0; time < 2; ++time) {
    const Gradients gradients = differentiate(s.g, loss, {&s.x, 1});
    REQUIRE(gradients.states.size() == 1);
    CHECK(gradients.states[0].leaf == s.all.gz);
    CHECK(gradients.states[0].next == gradients.of[0].at(MabnGradient::kNextGz));
  }
  CHECK(s.g.updates().empty());
}

TEST_CASE("mabn: nodes that read one gz hand it on, from the last to the first") {
  States s;
  const Value other = s.g.input("other", s.g.type(s.x));
  const Value first = ops::mabn(s.g, s.x, {}, s.all, {.m = 2});
  const Value last = ops::mabn(s.g, other, {}, s.all, {.m = 2});
  const Value wrt[] = {s.x, other};
  const Gradients d = differentiate(s.g, ops::sum(s.g, ops::add(s.g, first, last)), wrt);
  CHECK(s.g.node(d.of[1]).inputs[MabnBackwardInput::kGz] == s.all.gz);
  CHECK(s.g.node(d.of[0]).inputs[MabnBackwardInput::kGz] == d.of[1].at(MabnGradient::kNextGz));
  REQUIRE(d.states.size() == 1);
  CHECK(d.states[0].next == d.of[0].at(MabnGradient::kNextGz));
}

TEST_CASE("mabn: refusals") {
  struct Types {
    TensorType x{DType::kF32, {4, 3}}, gain{DType::kF32, {3}}, bias = gain;
    TensorType x2{DType::kF32, {2, 3}}, gz = x2, v = gain, step{DType::kI32, {}};
    TensorType mask{DType::kU8, {4}};
  };
  const auto refused = [](const Types& t, MabnAttrs attrs, std::string_view message) {
    if (attrs.m == 16) attrs.m = 2;
    check_op_refused(
        {t.x, t.gain, t.bias, t.x2, t.gz, t.v, t.step, t.mask},
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{
              ops::mabn(g, in[0], {in[1], in[2]}, {in[3], in[4], in[5], in[6], in[7]}, attrs)};
        },
        "mabn", message);
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
  refused({.step = f32({})}, {}, "step: expected i32, got f32");
  refused({.step = {DType::kI32, {1}}}, {}, "step: expected (), got (1)");
  refused({.mask = {DType::kU8, {3}}}, {}, "mask: expected (4), got (3)");
  refused({.x = f32({4, 3, 1, 1})}, {}, "mask: expected none for images, got (4)");
  refused({}, {.eps = -1}, "eps: expected >= 0, got -1");
  refused({}, {.keep = 1.5}, "keep: expected in [0, 1], got 1.5");
  refused({}, {.clip = 0.5}, "clip: expected >= 1, got 0.5");
  refused({}, {.m = 0}, "m: expected >= 1, got 0");
}

}  // namespace keel::test
