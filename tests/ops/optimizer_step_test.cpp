// Optimizer updates against their textbook formulas, over several steps.
#include "src/ops/optimizer_step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backends/reference/backend.h"
#include "src/autodiff/gradient.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

constexpr double kRate = 0.1;

Initializer values(double first) {
  return [first](Tensor& t, const Philox&) {
    double next = first;
    for (float& x : t.as<float>()) x = float(next), next -= 1.25;
  };
}

// A program of one optimizer step on p (3) whose moments are states, so that steps follow steps.
struct Training {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  std::unique_ptr<Program> program;

  using Build = std::function<void(Graph&, Value p, Value g, Value scale)>;
  explicit Training(const Build& build, bool scaled) {
    Graph g;
    const TensorType type{DType::kF32, {3}};
    const Value p = g.parameter("p", type, values(1));
    const Value gradient = g.input("g", type);
    build(g, p, gradient, scaled ? g.input("scale", {DType::kF32, {}}) : Value{});
    program = std::make_unique<Program>(backend, variables, g);
  }

  void step(const Tensor& g, std::optional<double> scale = {}) {
    program->feed("g", g);
    if (scale) program->feed("scale", f64({}, {*scale}));
    program->run();
  }
  double at(const char* name, std::int64_t e) const { return variables.read(name, true).at(e); }
};

Training::Build sgd(const SgdAttrs& attrs, bool velocity) {
  return [=](Graph& g, Value p, Value gradient, Value scale) {
    const Value u = velocity ? g.state("u", g.type(p), {}) : Value{};
    const Value lr = g.constant(kRate, DType::kF64);
    const Value next = ops::sgd_step(g, {p, gradient, lr, scale, u}, attrs);
    g.mark_update(p, next);
    if (velocity) g.mark_update(u, next.at(1));
  };
}

Training::Build adam(const AdamAttrs& attrs) {
  return [=](Graph& g, Value p, Value gradient, Value scale) {
    const Value m = g.state("m", g.type(p), {}), v = g.state("v", g.type(p), {});
    const Value step = g.input("step", {DType::kI32, {}}), lr = g.constant(kRate, DType::kF64);
    const Value next = ops::adam_step(g, {p, gradient, lr, scale, step, m, v}, attrs);
    g.mark_update(p, next);
    g.mark_update(m, next.at(1));
    g.mark_update(v, next.at(2));
  };
}

constexpr int kSteps = 4;
Tensor gradient_at(int t) { return random_normal({3}, 50 + std::uint32_t(t)); }
constexpr double kScales[kSteps] = {1, 0.5, 2, 0.25};

TEST_CASE("sgd_step: momentum, decay, Nesterov and scale over four steps") {
  const SgdAttrs rows[] = {
      {}, {0.9, 0, false}, {0.9, 0.1, false}, {0.9, 0.1, true}, {0, 0.3, false}};
  for (const SgdAttrs& attrs : rows) {
    for (bool scaled : {false, true}) {
      CAPTURE(Attrs(attrs).text());
      CAPTURE(scaled);
      Training training(sgd(attrs, attrs.momentum > 0), scaled);
      double p[3], u[3] = {};
      for (int e = 0; e < 3; ++e) p[e] = 1 - 1.25 * e;
      for (int t = 0; t < kSteps; ++t) {
        const Tensor g = gradient_at(t);
        training.step(g, scaled ? std::optional(kScales[t]) : std::nullopt);
        for (int e = 0; e < 3; ++e) {
          const double d = (scaled ? kScales[t] : 1) * g.at(e) + attrs.weight_decay * p[e];
          u[e] = attrs.momentum * u[e] + d;
          p[e] -= kRate * (attrs.nesterov ? d + attrs.momentum * u[e] : u[e]);
          CHECK(training.at("p", e) == doctest::Approx(p[e]).epsilon(1e-14));
          if (attrs.momentum > 0)
            CHECK(training.at("u", e) == doctest::Approx(u[e]).epsilon(1e-14));
        }
      }
    }
  }
}

TEST_CASE("adam_step: Adam and AdamW over four steps") {
  const AdamAttrs rows[] = {{},
                            {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1},
                            {.weight_decay = 0.1, .decoupled = true},
                            {.beta1 = 0, .beta2 = 0}};
  for (const AdamAttrs& attrs : rows) {
    CAPTURE(Attrs(attrs).text());
    Training training(adam(attrs), true);
    double p[3], m[3] = {}, v[3] = {};
    for (int e = 0; e < 3; ++e) p[e] = 1 - 1.25 * e;
    for (int t = 1; t <= kSteps; ++t) {
      const Tensor g = gradient_at(t);
      const double scale = kScales[t - 1];
      training.program->feed("step", i32({}, {t - 1}));
      training.step(g, scale);
      for (int e = 0; e < 3; ++e) {
        double d = scale * g.at(e);
        if (attrs.decoupled) p[e] *= 1 - kRate * attrs.weight_decay;
        if (!attrs.decoupled) d += attrs.weight_decay * p[e];
        m[e] = attrs.beta1 * m[e] + (1 - attrs.beta1) * d;
        v[e] = attrs.beta2 * v[e] + (1 - attrs.beta2) * d * d;
        const double mhat = m[e] / (1 - std::pow(attrs.beta1, t));
        const double vhat = v[e] / (1 - std::pow(attrs.beta2, t));
        p[e] -= kRate * mhat / (std::sqrt(vhat) + attrs.eps);
        CHECK(training.at("p", e) == doctest::Approx(p[e]).epsilon(1e-13));
        CHECK(training.at("m", e) == doctest::Approx(m[e]).epsilon(1e-13));
        CHECK(training.at("v", e) == doctest::Approx(v[e]).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("adam_step: the first step is lr in the direction of the sign") {
  Training training(adam({.eps = 1e-12}), false);
  training.step(f64({3}, {5, -1e-3, 40}));
  CHECK(training.at("p", 0) == doctest::Approx(1 - kRate));
  CHECK(training.at("p", 1) == doctest::Approx(-0.25 + kRate));
  CHECK(training.at("p", 2) == doctest::Approx(-1.5 - kRate));
}

TEST_CASE("optimizer steps: a scale that is not finite changes nothing") {
  const double inf = std::numeric_limits<double>::infinity();
  for (double scale : {std::nan(""), inf, -inf}) {
    CAPTURE(scale);
    Training s(sgd({0.9, 0.1, true}, true), true), a(adam({.weight_decay = 0.1}), true);
    for (Training* training : {&s, &a}) {
      training->step(gradient_at(0), 1.0);
      std::map<std::string, Tensor> before;
      for (const auto& [name, variable] : training->variables.all()) {
        before[name] = training->variables.read(name, true);
      }
      CHECK(before.at("p").at(0) != 1);
      training->step(f64({3}, {std::nan(""), inf, 1}), scale);
      for (const auto& [name, value] : before) {
        CAPTURE(name);
        check_close(training->variables.read(name, true), value, 0);
      }
    }
  }
}

TEST_CASE("optimizer steps: fresh outputs keep the old values too when the step is left out") {
  OpCase c;
  for (std::uint32_t i = 0; i < 5; ++i) c.inputs.push_back(random_normal({2}, i));
  c.inputs[4] = f64({}, {std::nan("")});
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value lr = g.constant(kRate, DType::kF64), step = g.constant(Tensor(DType::kI32, {}));
    const Value s = ops::sgd_step(g, {v[0], v[1], lr, v[4], v[2]}, {.momentum = 0.5});
    const Value a = ops::adam_step(g, {v[0], v[1], lr, v[4], step, v[2], v[3]}, {});
    return std::vector{s, s.at(1), a, a.at(1), a.at(2)};
  };
  const Results results = run_reference(c);
  const std::size_t source[] = {0, 2, 0, 2, 3};
  for (std::size_t j = 0; j < 5; ++j) {
    check_close(results.at(fmt::format("y{}", j)), c.inputs[source[j]], 0);
  }
}

// Where inputs stay as they are, the moments before and after a step lie apart.
TEST_CASE("optimizer steps: fresh outputs hold the step") {
  OpCase c;
  for (std::uint32_t i = 0; i < 3; ++i) c.inputs.push_back(random_normal({2}, i));
  c.inputs.push_back(f64({2}, {0.25, 4}));
  c.gradients = false;
  const AdamAttrs attrs{.beta1 = 0.75, .beta2 = 0.5, .eps = 0.125};
  c.build = [&](Graph& g, const std::vector<Value>& v) {
    const Value lr = g.constant(kRate, DType::kF64), step = g.constant(i32({}, {1}));
    const Value s = ops::sgd_step(g, {v[0], v[1], lr, {}, v[2]}, {.momentum = 0.5});
    const Value a = ops::adam_step(g, {v[0], v[1], lr, {}, step, v[2], v[3]}, attrs);
    return std::vector{s, s.at(1), a, a.at(1), a.at(2)};
  };
  const Results results = run_reference(c);
  for (std::int64_t e = 0; e < 2; ++e) {
    const auto in = [&](std::size_t i) { return c.inputs[i].at(e); };
    const double p = in(0), d = in(1), u = 0.5 * in(2) + d;
    const double m = 0.75 * in(2) + 0.25 * d, v = 0.5 * in(3) + 0.5 * d * d;
    const double change = m / (1 - 0.75 * 0.75) / (std::sqrt(v / (1 - 0.5 * 0.5)) + 0.125);
    const double expected[] = {p - kRate * u, u, p - kRate * change, m, v};
    for (std::size_t j = 0; j < 5; ++j) {
      CHECK(results.at(fmt::format("y{}", j)).at(e) == doctest::Approx(expected[j]).epsilon(1e-13));
    }
  }
}

TEST_CASE("sum_squares: adds up squares of every element") {
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {1, -2, 3, -4}));
  c.inputs.push_back(Tensor(DType::kF64, {0}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::sum_squares(g, v[0]), ops::sum_squares(g, v[1])};
  };
  const Results results = run_reference(c);
  CHECK(results.at("y0").at(0) == 30);
  CHECK(results.at("y1").at(0) == 0);
}

TEST_CASE("total_norm: the root of the sum of all sums of squares") {
  OpCase c;
  for (const double squares : {9.0, 16.0, 144.0}) c.inputs.push_back(f64({}, {squares}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::total_norm(g, v), ops::total_norm(g, {v[1]})};
  };
  const Results results = run_reference(c);
  CHECK(results.at("y0").at(0) == 13);
  CHECK(results.at("y1").at(0) == 4);
}

TEST_CASE("total_norm: refusals") {
  const TensorType scalar{DType::kF32, {}}, wide{DType::kF64, {}}, vector{DType::kF32, {3}};
  const Build norm = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::total_norm(g, v)};
  };
  check_op_refused({scalar, vector}, norm, "total_norm", "squares: expected (), got (3)");
  check_op_refused({scalar, wide}, norm, "total_norm", "squares: expected f32, got f64");
  check_op_refused({{DType::kI32, {}}}, norm, "total_norm", "squares: expected a floating type");
  Graph g;
  CHECK_THROWS_WITH_AS(ops::total_norm(g, {}),
                       "[total_norm] squares: expected at least one, got none", Error);
}

TEST_CASE("optimizer steps: refusals of rows") {
  const TensorType table{DType::kF32, {7, 2}}, rows{DType::kF32, {3, 2}}, flat{DType::kF32, {7}},
      ids{DType::kI32, {3}}, scalar{DType::kF32, {}};
  const auto sgd = [](bool has_ids, SgdAttrs attrs) -> Build {
    return [=](Graph& g, const std::vector<Value>& v) {
      const Value given = has_ids ? v[2] : Value{};
      return std::vector{ops::sgd_step(g, {v[0], v[1], v[3], {}, {}, given}, attrs)};
    };
  };
  check_op_refused({table, rows, ids, scalar}, sgd(false, {}), "sgd_step",
                   "g: expected f32(7, 2), got f32(3, 2)");
  check_op_refused({table, table, ids, scalar}, sgd(true, {}), "sgd_step",
                   "g: expected f32(3, 2), got f32(7, 2)");
  check_op_refused({flat, rows, ids, scalar}, sgd(true, {}), "sgd_step",
                   "p: expected (vocabulary, width) with ids, got (7)");
  check_op_refused({table, rows, rows, scalar}, sgd(true, {}), "sgd_step", "ids: expected i32");
  check_op_refused({table, table, ids, scalar}, sgd(false, {.lazy = true}), "sgd_step",
                   "ids: expected ids for a lazy update, got none");
  const Build squares = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::sum_squares(g, v[0], v[1], 7)};
  };
  check_op_refused({flat, ids}, squares, "sum_squares", "x: expected (n, width) with ids, got (7)");
  check_op_refused({table, ids}, squares, "sum_squares", "ids: expected (7), got (3)");
}

TEST_CASE("optimizer steps: refusals") {
  const TensorType p{DType::kF32, {3}}, other{DType::kF32, {4}}, scalar{DType::kF32, {}},
      step{DType::kI32, {}};
  const auto sgd = [](SgdAttrs attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::sgd_step(g, {v[0], v[1], v[2], v[3], v[4]}, attrs)};
    };
  };
  const auto adam = [](AdamAttrs attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::adam_step(g, {v[0], v[1], v[2], {}, v[3], v[4], v[5]}, attrs)};
    };
  };
  check_op_refused({p, other, scalar, scalar, p}, sgd({}), "sgd_step",
                   "g: expected f32(3), got f32(4)");
  check_op_refused({p, p, p, scalar, p}, sgd({}), "sgd_step", "lr: expected (), got (3)");
  check_op_refused({p, p, scalar, p, p}, sgd({}), "sgd_step", "scale: expected (), got (3)");
  check_op_refused({p, p, scalar, scalar, other}, sgd({}), "sgd_step", "u: expected f32(3)");
  check_op_refused({p, p, scalar, scalar, p}, sgd({.momentum = 1}), "sgd_step", "momentum");
  check_op_refused({p, p, scalar, scalar, p, p}, adam({}), "adam_step", "step: expected i32");
  check_op_refused({p, p, scalar, step, other, p}, adam({}), "adam_step", "m: expected f32(3)");
  check_op_refused({p, p, scalar, step, p, other}, adam({}), "adam_step", "v: expected f32(3)");
  check_op_refused({p, p, scalar, step, p, p}, adam({.beta1 = 1}), "adam_step", "beta1");
  check_op_refused({p, p, scalar, step, p, p}, adam({.beta2 = -0.1}), "adam_step", "beta2");
  check_op_refused({p, p, scalar, step, p, p}, adam({.eps = 0}), "adam_step", "eps");
  check_op_refused(
      {step},
      [](Graph& g, const std::vector<Value>& v) { return std::vector{ops::sum_squares(g, v[0])}; },
      "sum_squares", "x: expected a floating type, got i32");
}

}  // namespace
}  // namespace keel::test
