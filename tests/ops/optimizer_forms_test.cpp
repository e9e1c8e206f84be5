// Single updates against their formulas by hand: Adam's forms, Adagrad, RMSProp of Graves, and the
// scale of the learning rate.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/ops/optimizer_step.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

constexpr std::int64_t kSize = 5;
constexpr double kLr = 0.1;
constexpr std::int32_t kStep = 6;

// One element before a step, and what comes of it.
struct Element {
  double p, g, states[3];
};
struct Next {
  double p, states[3];
};
using Formula = std::function<Next(const Element&)>;

// Adds an update of p by g, scaled, whose states are v[4] and so on.
using Update = std::function<Value(Graph&, const std::vector<Value>& v, Value step)>;

// Inputs p, g, lr, scale and three states, the first of them positive.
OpCase case_of(const Update& update, int states, double scale) {
  OpCase c;
  for (std::uint32_t i = 0; i < 2; ++i) c.inputs.push_back(random_normal({kSize}, i));
  c.inputs.push_back(f64({}, {kLr}));
  c.inputs.push_back(f64({}, {scale}));
  for (std::uint32_t i = 4; i < 7; ++i) c.inputs.push_back(random_normal({kSize}, i));
  for (double& v : c.inputs[4].as<double>()) v = 3 + v * v;
  c.gradients = false;
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    const Value next = update(g, v, g.constant(i32({}, {kStep})));
    std::vector<Value> outputs;
    for (int port = 0; port <= states; ++port) outputs.push_back(next.at(port));
    return outputs;
  };
  return c;
}

void check_formula(const Update& update, int states, const Formula& formula) {
  const double scale = 0.5;
  const OpCase c = case_of(update, states, scale);
  const Results results = run_reference(c);
  for (std::int64_t e = 0; e < kSize; ++e) {
    CAPTURE(e);
    const auto in = [&](std::size_t i) { return c.inputs[i].at(e); };
    const Next next = formula({in(0), scale * in(1), {in(4), in(5), in(6)}});
    CHECK(results.at("y0").at(e) == doctest::Approx(next.p).epsilon(1e-13));
    for (int j = 0; j < states; ++j) {
      CHECK(results.at(fmt::format("y{}", j + 1)).at(e) ==
            doctest::Approx(next.states[j]).epsilon(1e-13));
    }
  }
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const OpCase diverged = case_of(update, states, bad);
    const Results kept = run_reference(diverged);
    check_close(kept.at("y0"), diverged.inputs[0], 0);
    for (int j = 0; j < states; ++j) {
      check_close(kept.at(fmt::format("y{}", j + 1)), diverged.inputs[std::size_t(j + 4)], 0);
    }
  }
}

TEST_CASE("optimizer forms: Adam of fairseq, of the releases, with a scaled rate") {
  const double t = kStep + 1;
  struct Row {
    AdamAttrs attrs;
    double base1, base2;  // of the bias
  };
  // v is the first state here, since it is the one that is positive.
  const Row rows[] = {
      {{.weight_decay = 0.2, .decoupled = true, .raw_eps = true}, 0.9, 0.999},
      {{.beta2 = 0.9, .eps = 0.01, .raw_eps = true, .release_bias = true}, 0.1, 0.1},
      {{.beta1 = 0.8, .beta2 = 0.9, .eps = 0.01, .release_bias = true}, 0.2, 0.1},
      {{.weight_decay = 0.2, .decoupled = true, .lr_scale = 0.25}, 0.9, 0.999},
      {{.weight_decay = 0.2, .lr_scale = 0.25}, 0.9, 0.999}};
  for (const auto& [a, base1, base2] : rows) {
    CAPTURE(Attrs(a).text());
    const auto update = [&](Graph& g, const std::vector<Value>& v, Value step) {
      return ops::adam_step(g, {v[0], v[1], v[2], v[3], step, v[5], v[4]}, a);
    };
    // Outputs are p, m, v, and the states of the case v, m.
    OpCase c = case_of(update, 2, 0.5);
    const Results results = run_reference(c);
    const double c1 = 1 - std::pow(base1, t), c2 = 1 - std::pow(base2, t);
    for (std::int64_t e = 0; e < kSize; ++e) {
      double p = c.inputs[0].at(e), g = 0.5 * c.inputs[1].at(e);
      const double lr = kLr * a.lr_scale;
      if (!a.decoupled) g += a.weight_decay * p;
      if (a.decoupled) p -= a.weight_decay * lr * p;
      const double m = a.beta1 * c.inputs[5].at(e) + (1 - a.beta1) * g;
      const double v = a.beta2 * c.inputs[4].at(e) + (1 - a.beta2) * g * g;
      p -= a.raw_eps ? lr * (std::sqrt(c2) / c1) * m / (std::sqrt(v) + a.eps)
                     : lr * (m / c1) / (std::sqrt(v / c2) + a.eps);
      CHECK(results.at("y0").at(e) == doctest::Approx(p).epsilon(1e-13));
      CHECK(results.at("y1").at(e) == doctest::Approx(m).epsilon(1e-13));
      CHECK(results.at("y2").at(e) == doctest::Approx(v).epsilon(1e-13));
    }
  }
}

TEST_CASE("optimizer forms: Adagrad") {
  for (const AdagradAttrs& a :
       {AdagradAttrs{}, AdagradAttrs{.eps = 0.5, .weight_decay = 0.3, .lr_scale = 2}}) {
    CAPTURE(Attrs(a).text());
    check_formula(
        [&](Graph& g, const std::vector<Value>& v, Value) {
          return ops::adagrad_step(g, {v[0], v[1], v[2], v[3], v[4]}, a);
        },
        1,
        [&](const Element& x) -> Next {
          const double g = x.g + a.weight_decay * x.p, h = x.states[0] + g * g;
          return {x.p - kLr * a.lr_scale * g / std::sqrt(h + a.eps), {h}};
        });
  }
}

TEST_CASE("optimizer forms: RMSProp of Graves") {
  const GravesAttrs rows[] = {
      {}, {.keep = 0.5, .momentum = 0.2, .eps = 0.5, .weight_decay = 0.3, .lr_scale = 2}};
  for (const GravesAttrs& a : rows) {
    CAPTURE(Attrs(a).text());
    check_formula(
        [&](Graph& g, const std::vector<Value>& v, Value) {
          return ops::rmsprop_step(g, {v[0], v[1], v[2], v[3], v[4], v[5], v[6]}, a);
        },
        3,
        [&](const Element& x) -> Next {
          const double g = x.g + a.weight_decay * x.p;
          const double n = a.keep * x.states[0] + (1 - a.keep) * g * g;
          const double q = a.keep * x.states[1] + (1 - a.keep) * g;
          const double rate = kLr * a.lr_scale;
          const double d = a.momentum * x.states[2] - rate * g / std::sqrt(n - q * q + a.eps);
          return {x.p + d, {n, q, d}};
        });
  }
}

TEST_CASE("optimizer forms: a variance below 0 counts as 0") {
  OpCase c;
  for (double x : {1, 0, 4, 3}) c.inputs.push_back(f64({1}, {x}));  // p, g, n and q
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value lr = g.constant(kLr, DType::kF64), zero = g.constant(f64({1}, {0}));
    return std::vector{ops::rmsprop_step(g, {v[0], v[1], lr, {}, v[2], v[3], zero},
                                         {.keep = 0.99, .weight_decay = 0.5})};
  };
  // n = 0.99 * 4 + 0.01 / 4 = 3.9625 and q = 0.99 * 3 + 0.01 / 2 = 2.975, whose square is 8.85.
  CHECK(run_reference(c).at("y0").at(0) == doctest::Approx(1 - kLr * 0.5 / 0.01).epsilon(1e-13));
}

TEST_CASE("optimizer forms: sgd with a scaled rate") {
  check_formula(
      [](Graph& g, const std::vector<Value>& v, Value) {
        return ops::sgd_step(g, {v[0], v[1], v[2], v[3], v[4]}, {.momentum = 0.5, .lr_scale = 3});
      },
      1,
      [](const Element& x) -> Next {
        const double u = 0.5 * x.states[0] + x.g;
        return {x.p - 3 * kLr * u, {u}};
      });
}

TEST_CASE("optimizer forms: refusals") {
  const TensorType p{DType::kF32, {4}}, other{DType::kF32, {3}}, scalar{DType::kF32, {}};
  const auto adagrad = [](const AdagradAttrs& attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::adagrad_step(g, {v[0], v[1], v[2], v[3], v[4]}, attrs)};
    };
  };
  const auto graves = [](const GravesAttrs& attrs) -> Build {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::rmsprop_step(g, {v[0], v[1], v[2], v[3], v[4], v[5], v[6]}, attrs)};
    };
  };
  const std::vector<TensorType> one{p, p, scalar, scalar, p};
  const std::vector<TensorType> three{p, p, scalar, scalar, p, p, p};
  check_op_refused({p, p, scalar, scalar, other}, adagrad({}), "adagrad_step",
                   "h: expected f32(4), got f32(3)");
  check_op_refused(one, adagrad({.eps = 0}), "adagrad_step",
                   "eps: expected a value in its range, got 0");
  check_op_refused(one, adagrad({.lr_scale = -1}), "adagrad_step",
                   "lr_scale: expected a value in its range, got -1");
  check_op_refused(three, graves({.keep = 1}), "rmsprop_step",
                   "keep: expected a value in its range, got 1");
  check_op_refused(three, graves({.momentum = -0.5}), "rmsprop_step",
                   "momentum: expected a value in its range, got -0.5");
  check_op_refused(three, graves({.eps = 0}), "rmsprop_step",
                   "eps: expected a value in its range, got 0");
  for (std::size_t port : {4, 5, 6}) {
    std::vector<TensorType> types = three;
    types[port] = other;
    check_op_refused(types, graves({}), "rmsprop_step", "expected f32(4), got f32(3)");
  }
}

}  // namespace
}  // namespace keel::test
