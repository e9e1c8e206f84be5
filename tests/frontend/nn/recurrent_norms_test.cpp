// Cells with the norms that the other tests of cells leave out.
#include <doctest/doctest.h>

#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/stop_gradient.h"
#include "tests/frontend/nn/recurrent_layers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

TEST_CASE("recurrent norms: gradients of all parameters where the backward is the derivative" *
          doctest::test_suite("slow")) {
  // mabn and batchrenorm start with the batch's own statistics, and are exact as long. Six numbers
  // make two groups of three; in groups of two all numbers would be 1 and -1.
  for (const std::string norm : {"adanorm{detach=false}", "scalenorm", "groupnorm{groups=2}",
                                 "pn_v", "mabn", "batchrenorm"}) {
    const std::int64_t width = norm.starts_with("groupnorm") ? 6 : kWidth;
    for (const bool masked : {false, true}) {
      CAPTURE(norm);
      CAPTURE(masked);
      LayerRun of_lstm(lstm(options(norm), masked, width), kInput, Mode::kProbe);
      check_central_differences(of_lstm);
      LayerRun of_gru(gru(options(norm), masked, width), kInput, Mode::kProbe);
      check_central_differences(of_gru);
    }
  }
}

// A norm of x (rows, width) put together from ops whose gradients are exact; what it takes for a
// constant stands after stop_gradient.
Value norm_with_constants(Graph& g, const std::string& norm, Value x) {
  const auto held = [&](bool holds, Value v) { return holds ? ops::stop_gradient(g, v) : v; };
  const bool holds_both = norm == "detachnorm";
  const Value mean = ops::mean(g, x, {1}, true), centred = ops::sub(g, x, mean);
  const Value var = ops::mean(g, ops::square(g, centred), {1}, true);
  const Value deviation = ops::sqrt(g, ops::scale(g, var, 1, 1e-5));
  const Value xhat = ops::div(g, ops::sub(g, x, held(holds_both || norm == "detachmean", mean)),
                              held(holds_both || norm == "detachvariance", deviation));
  if (norm != "adanorm") return xhat;
  return ops::mul(g, ops::stop_gradient(g, ops::scale(g, xhat, -0.1, 1)), xhat);
}

// An LSTM of the same parameters, step by step.
Layer lstm_with_constants(const std::string& norm) {
  return [norm](Net& net, Value x) {
    Graph& g = net.graph;
    const Value w = net.parameter("layer/input/weight", {kIn, 4 * kWidth}, zeros()),
                u = net.parameter("layer/recurrent/weight", {kWidth, 4 * kWidth}, zeros()),
                b = net.parameter("layer/bias", {4 * kWidth}, zeros());
    Value h = g.constant(Tensor(net.dtype, {kRows, kWidth})), c = h;
    std::vector<Value> all;
    for (const Value at : unstack(net, x)) {
      const Value of_h = norm_with_constants(g, norm, ops::matmul(g, h, u)),
                  of_x = norm_with_constants(g, norm, ops::matmul(g, at, w));
      const Value sums = ops::add(g, ops::add(g, of_h, of_x), b);
      const auto gate = [&](std::int64_t i) {
        return ops::slice_axis(g, sums, 1, i * kWidth, kWidth);
      };
      const Value kept = ops::mul(g, ops::sigmoid(g, gate(0)), c),
                  fresh = ops::mul(g, ops::sigmoid(g, gate(1)), ops::tanh(g, gate(3)));
      c = ops::add(g, kept, fresh);
      h = ops::mul(g, ops::sigmoid(g, gate(2)), ops::tanh(g, norm_with_constants(g, norm, c)));
      all.push_back(h);
    }
    return stack(net, all);
  };
}

TEST_CASE("recurrent norms: what a norm takes for a constant has no gradient in a cell either") {
  for (const std::string norm : {"detachnorm", "detachmean", "detachvariance", "adanorm"}) {
    CAPTURE(norm);
    LayerRun run(lstm(options(norm)), kInput), expected(lstm_with_constants(norm), kInput);
    scatter(run);
    for (const std::string& name : run.parameters) expected.variables.write(name, run.read(name));
    REQUIRE(run.parameters.size() == expected.parameters.size());
    run.program->run();
    expected.program->run();
    // Rows of zeros multiply what rounding adds by 1 / sqrt(eps) = 316 at a site.
    test::check_close(run.program->fetch("y", true), expected.program->fetch("y", true), 1e-12);
    for (const std::string& name : run.parameters) {
      CAPTURE(name);
      test::check_close(run.program->fetch("d " + name, true),
                        expected.program->fetch("d " + name, true), 1e-11);
    }
  }
}

// The state of a site at a time step.
Tensor state_at(const LayerRun& run, const std::string& site, const char* name, std::int64_t t) {
  const std::string step = t == 0 ? "" : fmt::format("t{}/", t);
  return run.read(fmt::format("layer/{}/norm/{}{}", site, step, name));
}

// The mean of the squares of what a site normalizes at time step t, x W or h U, over the rows that
// have it, for every feature.
std::vector<double> mean_squares(const LayerRun& run, const std::string& site, std::int64_t t,
                                 bool masked) {
  const bool is_input = site == "input";
  const Tensor x = is_input ? test::random_normal(kInput, 5, 2, 3) : run.program->fetch("y", true);
  const Tensor weight = run.read(fmt::format("layer/{}/weight", site));
  const std::int64_t in = is_input ? kIn : kWidth, at = is_input ? t : t - 1;
  std::vector<double> means(4 * kWidth, 0);
  double rows = 0;
  for (std::int64_t row = 0; row < kRows; ++row) rows += !masked || has_step(row, t);
  for (std::int64_t row = 0; row < kRows && at >= 0; ++row) {
    if (masked && !has_step(row, t)) continue;
    for (std::int64_t j = 0; j < 4 * kWidth; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < in; ++i) {
        sum += x.at((at * kRows + row) * in + i) * weight.at(i * 4 * kWidth + j);
      }
      means[std::size_t(j)] += sum * sum / rows;
    }
  }
  return means;
}

// Runs once more, and holds psi2 of every step, and nu of all of them, to their recursions with
// alpha = 0.9: nu' = nu (1 - 0.1 Gamma) + 0.1 Lambda, the sum over steps of rows times Lambda being
// dgain, for the gain is 1.
void check_power_norm_run(LayerRun& run, const std::string& site, bool masked) {
  std::vector<Tensor> psi2, nu;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    psi2.push_back(state_at(run, site, "psi2", t));
    nu.push_back(state_at(run, site, "nu", t));
  }
  run.program->run();
  const Tensor dgain = run.program->fetch(fmt::format("d layer/{}/norm/gain", site), true);
  std::vector<double> lambdas(4 * kWidth, 0);
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const std::vector<double> squares = mean_squares(run, site, t, masked);
    const Tensor next_psi2 = state_at(run, site, "psi2", t), next_nu = state_at(run, site, "nu", t);
    double rows = 0;
    for (std::int64_t row = 0; row < kRows; ++row) rows += !masked || has_step(row, t);
    for (std::int64_t j = 0; j < 4 * kWidth; ++j) {
      const double square = squares[std::size_t(j)], before = psi2[std::size_t(t)].at(j);
      CHECK(next_psi2.at(j) == doctest::Approx(0.9 * before + 0.1 * square).epsilon(1e-12));
      const double gamma = square / (before + 1e-5);
      const double rest = next_nu.at(j) - nu[std::size_t(t)].at(j) * (1 - 0.1 * gamma);
      // At first h is 0, and so is what the forget gate, which comes first, has to forget.
      const bool is_reached = t > 0 || (site == "input" && j >= kWidth);
      CHECK((rest != 0) == is_reached);
      lambdas[std::size_t(j)] += rows * rest / 0.1;
    }
  }
  for (std::int64_t j = 0; j < 4 * kWidth; ++j) {
    CHECK(lambdas[std::size_t(j)] == doctest::Approx(dgain.at(j)).epsilon(1e-10));
  }
}

TEST_CASE("recurrent norms: psi2 and nu of powernorm are those of each time step") {
  for (const std::string site : {"input", "recurrent"}) {
    for (const bool masked : {false, true}) {
      CAPTURE(site);
      CAPTURE(masked);
      LayerRun run(lstm(options("powernorm{heads=0}"), masked), kInput);
      run.program->run();
      check_power_norm_run(run, site, masked);
      check_power_norm_run(run, site, masked);
    }
  }
}

}  // namespace
}  // namespace keel::nn
