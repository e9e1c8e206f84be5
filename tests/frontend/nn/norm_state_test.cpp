// Norms by name: what their states become, and what their gradient takes for constant.
#include <algorithm>
#include <cmath>

#include "frontend/nn/init.h"
#include "frontend/nn/norm.h"
#include "tests/frontend/nn/helpers.h"

namespace keel::nn {
namespace {

Layer layer_of(const std::string& text) {
  return [norm = Norm::parse(text)](Net& net, Value x) { return norm(net, "n", x); };
}

bool same_elements(const Tensor& a, const Tensor& b) {
  for (std::int64_t e = 0; e < a.elements(); ++e) {
    if (a.at(e) != b.at(e)) return false;
  }
  return true;
}

TEST_CASE("norm: every state moves in training and in nothing else") {
  for (const NormFacts& facts : norm_facts()) {
    if (facts.state == "-") continue;
    for (Mode mode : {Mode::kTrain, Mode::kProbe, Mode::kEvaluate}) {
      CAPTURE(facts.name);
      CAPTURE(int(mode));
      LayerRun run(layer_of(facts.name), {6, 5}, mode);
      std::vector<Tensor> before;
      for (const std::string& state : run.states) before.push_back(run.read(state));
      run.program->run();
      REQUIRE_FALSE(run.states.empty());
      for (std::size_t i = 0; i < run.states.size(); ++i) {
        CAPTURE(run.states[i]);
        CHECK(same_elements(run.read(run.states[i]), before[i]) == (mode != Mode::kTrain));
      }
    }
  }
}

TEST_CASE("norm: states that keep nothing are statistics of the batch") {
  const Tensor x = test::random_normal({6, 5}, 5, 2, 3);  // as LayerRun feeds it
  const auto mean = [&](std::int64_t c, double centre, double power) {
    double sum = 0;
    for (std::int64_t row = 0; row < 6; ++row) sum += std::pow(x.at(5 * row + c) - centre, power);
    return sum / 6;
  };
  const auto check = [](const char* text, const char* state, const auto& expected) {
    CAPTURE(text);
    LayerRun run(layer_of(text), {6, 5});
    run.program->run();
    for (std::int64_t c = 0; c < 5; ++c) {
      CHECK(run.read(state).at(c) == doctest::Approx(expected(c)).epsilon(1e-12));
    }
  };
  const auto square = [&](std::int64_t c) { return mean(c, 0, 2); };
  check("batchrenorm{rate=1}", "n/running_mean", [&](auto c) { return mean(c, 0, 1); });
  check("batchrenorm{rate=1,eps=0.5}", "n/running_std",
        [&](auto c) { return std::sqrt(mean(c, mean(c, 0, 1), 2) + 0.5); });
  check("pn_v{keep=0}", "n/psi2", square);
  check("powernorm{alpha_f=0,heads=0}", "n/psi2", square);
  check("mabn{keep=0}", "n/v", square);
  check("unifiednorm{keep=0}", "n/v", square);
}

// The largest |sum of dx| and |sum of dx * y| of any row. The mean has a gradient where the
// first is 0, the deviation where the second is.
struct Projections {
  double mean = 0, deviation = 0;
};
Projections projections(const std::string& text) {
  const Shape shape{6, 5};
  const Layer norm = layer_of(text);
  LayerRun run(
      [&](Net& net, Value x) {
        const Value shift = net.graph.parameter("shift", net.graph.type(x), zeros());
        return norm(net, ops::add(net.graph, x, shift));
      },
      shape);
  run.program->run();
  const Tensor y = run.program->fetch("y", true), dx = run.program->fetch("d shift", true);
  Projections result;
  for (std::int64_t row = 0; row < 6; ++row) {
    double sum = 0, product = 0;
    for (std::int64_t e = 5 * row; e < 5 * row + 5; ++e) {
      sum += dx.at(e), product += dx.at(e) * y.at(e);
    }
    result.mean = std::max(result.mean, std::abs(sum));
    result.deviation = std::max(result.deviation, std::abs(product));
  }
  return result;
}

TEST_CASE("norm: a name says what its gradient takes for constant") {
  const auto check = [](const char* text, bool mean, bool deviation) {
    CAPTURE(text);
    const Projections of = projections(text);
    CHECK((of.mean < 1e-12) == mean);
    CHECK((of.deviation < 1e-12) == deviation);
  };
  check("layernorm_simple{eps=0}", true, true);
  check("detachnorm{eps=0}", false, false);
  check("detachmean{eps=0}", false, true);
  check("detachvariance{eps=0}", true, false);
  check("rmsnorm{eps=0,gain=false}", false, true);
}

}  // namespace
}  // namespace keel::nn
