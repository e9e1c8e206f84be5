// PowerNorm over many steps: what its recursion of nu is equal to, when it is PN-V, when it is
// bounded and when it diverges.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "bench/norm_runner.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"
#include "tests/support/power_norm_stepper.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// A state of three channels.
Value state(Graph& g, const std::string& name, float value) {
  return g.state(name, {DType::kF32, {3}},
                 [=](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); });
}

// mean over rows of a * b in column c
double column_mean(const Tensor& a, const Tensor& b, std::int64_t c) {
  const std::int64_t width = a.shape().back(), rows = a.elements() / width;
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    sum += a.at(row * width + c) * b.at(row * width + c);
  return sum / double(rows);
}

NormBuild power_norm(PowerNormMode mode) {
  return [mode](Graph& g, const NormInputs& in, double eps) {
    return ops::power_norm(g, in.x, {}, {in.state[0], in.state[1], {}, {}},
                           {.mode = mode, .eps = eps});
  };
}

}  // namespace

// The release keeps e = nu / (1 - alpha_b) and adds mean((g - (1 - alpha_b) e xhat) xhat) to it.
TEST_CASE("power_norm recursion: nu is (1 - alpha_b) e over 50 steps") {
  PowerNormStepper norm("reference", {11, 3}, {.alpha_f = 0.95, .alpha_b = 0.8, .warmup = 20});
  norm.write("gain", f64({3}, {1.5, -0.5, 2}));
  std::vector<double> e(3, 0.0);
  for (std::uint32_t t = 1; t <= 50; ++t) {
    const Tensor x = random_normal({11, 3}, t).to(DType::kF32);
    const Tensor dy = random_normal({11, 3}, 100 + t).to(DType::kF32);
    const Results got = norm.step(x, dy);
    for (std::int64_t c = 0; c < 3; ++c) {
      const double gain[] = {1.5, -0.5, 2}, rstd = got.at("rstd").at(c);
      double sum = 0;
      for (std::int64_t i = c; i < x.elements(); i += 3) {
        const double xhat = x.at(i) * rstd;
        sum += (dy.at(i) * gain[c] - 0.2 * e[std::size_t(c)] * xhat) * xhat;
      }
      e[std::size_t(c)] += sum / 11;
      CHECK(got.at("nu").at(c) == doctest::Approx(0.2 * e[std::size_t(c)]).epsilon(1e-10));
    }
  }
}

// With psi2 = psi2_B and nu = mean(g xhat) both modes are PN-V.
TEST_CASE("power_norm recursion: the consistent point is PN-V") {
  const Tensor x = random_normal({9, 4}, 1, 1, 2), dy = random_normal({9, 4}, 2);
  NormData data{x.clone(), dy.clone(), {}, {}, {}, 1e-3};
  for (int i = 0; i < 2; ++i) data.state.emplace_back(DType::kF64, Shape{4});
  for (std::int64_t c = 0; c < 4; ++c) {
    const double psi2 = column_mean(x, x, c);
    data.state[0].as<double>()[std::size_t(c)] = psi2;
    data.state[1].as<double>()[std::size_t(c)] = column_mean(x, dy, c) / std::sqrt(psi2 + 1e-3);
  }
  const auto pn_v = [](Graph& g, const NormInputs& in, double eps) {
    return ops::pn_v(g, in.x, {}, {in.state[0], {}}, {.eps = eps});
  };
  const auto reference = make_backend("reference");
  const NormResult expected = run_norm(*reference, pn_v, data);
  for (const PowerNormMode mode : kPowerNormModes) {
    const NormResult got = run_norm(*reference, power_norm(mode), data);
    check_close(got.outputs[PowerNormOutput::kY], expected.outputs[PowerNormOutput::kY]);
    check_close(got.gradients[PowerNormGradient::kDx], expected.gradients[PowerNormGradient::kDx]);
  }
}

// While (1 - alpha_b) Gamma < 1: |nu_t| <= max over steps of |Lambda / Gamma| (from theorem 4).
TEST_CASE("power_norm recursion: nu is bounded while the recursion contracts") {
  for (double alpha : {0.9, 0.95, 0.99}) {
    PowerNormStepper norm("reference", {8, 2}, {.alpha_f = alpha, .alpha_b = alpha});
    std::vector<double> bound(2, 0.0);
    for (std::uint32_t t = 1; t <= 300; ++t) {
      const Tensor x = random_normal({8, 2}, t), dy = random_normal({8, 2}, 1000 + t, 0.3);
      const Results got = norm.step(x, dy);
      REQUIRE(got.at("contraction").at(0) < 1);
      double largest = 0;
      for (std::int64_t c = 0; c < 2; ++c) {
        const double lambda = column_mean(x, dy, c) * got.at("rstd").at(c);
        bound[std::size_t(c)] =
            std::max(bound[std::size_t(c)], std::abs(lambda / got.at("Gamma").at(c)));
        CHECK(std::abs(got.at("nu").at(c)) <= bound[std::size_t(c)] * (1 + 1e-12));
        largest = std::max(largest, got.at("Gamma").at(c));
      }
      CHECK(got.at("contraction").at(0) == doctest::Approx((1 - alpha) * largest));
    }
  }
}

TEST_CASE("power_norm recursion: the guard tells of a recursion that diverges") {
  for (const std::string& backend : tested_backends()) {
    PowerNormStepper norm(backend, {1, 2}, {.eps = 0, .alpha_f = 1});
    norm.write("nu", f64({2}, {0.5, -1}));
    const Tensor x = f64({1, 2}, {0, std::sqrt(21.0)}), dy = f64({1, 2}, {0, 0});
    for (int t = 0; t < 200; ++t) {
      const Results got = norm.step(x, dy);
      CHECK(got.at("contraction").at(0) == doctest::Approx(2.1));
      CHECK(got.at("nu_max").at(0) == doctest::Approx(std::pow(1.1, t)).epsilon(1e-4));
    }
    const Results nan = norm.step(f64({1, 2}, {NAN, 1}), dy);
    CHECK(std::isnan(nan.at("contraction").at(0)));
  }
}

TEST_CASE("power_norm recursion: the backward reports nu, marks nothing and can be built twice") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 3}});
  const Value psi2 = state(g, "psi2", 1), nu = state(g, "nu", 0);
  const Value loss = ops::sum(g, ops::power_norm(g, x, {}, {psi2, nu, {}, {}}));
  for (int time = 0; time < 2; ++time) {
    const Gradients gradients = differentiate(g, loss, {&x, 1});
    REQUIRE(gradients.states.size() == 1);
    CHECK(gradients.states[0].leaf == nu);
    CHECK(gradients.states[0].next == gradients.of[0].at(PowerNormGradient::kNextNu));
  }
  CHECK(g.updates().empty());
}

// The node that comes last has its backward first, and hands nu to the one before.
TEST_CASE("power_norm recursion: nodes that read one nu hand it on backwards") {
  Graph g;
  const Value psi2 = state(g, "psi2", 1), nu = state(g, "nu", 0.5f);
  const PowerNormAttrs attrs{.mode = PowerNormMode::kPaper, .eps = 0, .alpha_b = 0.75};
  Value x[2], y[2];
  for (int i : {0, 1}) {
    x[i] = g.input(fmt::format("x{}", i), {DType::kF32, {4, 3}});
    y[i] = ops::power_norm(g, x[i], {}, {psi2, nu, {}, {}}, attrs);
    g.mark_output(fmt::format("Gamma{}", i), y[i].at(PowerNormOutput::kGamma));
  }
  const Value loss = ops::add(g, ops::sum(g, y[0]), ops::sum(g, ops::scale(g, y[1], 3)));
  const Gradients gradients = differentiate(g, loss, x);
  REQUIRE(gradients.states.size() == 1);
  g.mark_output("nu", gradients.states[0].next);
  g.mark_output("dx0", gradients.of[0]);
  const Tensor values[2] = {random_normal({4, 3}, 1, 1), random_normal({4, 3}, 2, 1)};
  Feeds feeds;
  for (int i : {0, 1}) feeds[fmt::format("x{}", i)] = values[i].clone();
  const Results got = run_graph(*make_backend("reference"), g, feeds);
  Tensor one(DType::kF64, {4, 3});
  std::ranges::fill(one.as<double>(), 1.0);
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto next = [&](double from, int i, double dy) {
      const double gamma = got.at(fmt::format("Gamma{}", i)).at(c);
      return from * (1 - 0.25 * gamma) + 0.25 * dy * column_mean(values[i], one, c);
    };
    const double between = next(0.5, 1, 3);
    CHECK(got.at("nu").at(c) == doctest::Approx(next(between, 0, 1)).epsilon(1e-12));
    // dx = g - nu x where psi = 1.
    CHECK(got.at("dx0").at(c) == doctest::Approx(1 - between * values[0].at(c)).epsilon(1e-12));
  }
}

}  // namespace keel::test
