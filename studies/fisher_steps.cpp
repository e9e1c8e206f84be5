#include "studies/fisher_steps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::study {
namespace {

constexpr double kRate = 0.1, kScales[] = {0.5, 1, 2, 4};
// The angles that batchnorm is specified to turn by. They follow from that at scale 1, which the
// size of the targets sets.
constexpr double kAngles[] = {10.48, 2.65, 0.66, 0.166}, kAngleAtOne = 2.648;

double degrees(double radians) { return radians * 180 / std::numbers::pi; }

// The gradient of W of the loss sum((o - targets)^2) / (2 cases).
Tensor weight_gradient(Backend& backend, const Glm& glm, const Tensor& targets) {
  Graph g;
  const GlmValues v = add_glm(g, glm);
  const Value error = ops::sub(g, v.o, g.constant(targets.clone())), wrt[] = {v.w};
  const Value loss = ops::scale(g, dot(g, error, error), 0.5 / double(glm.cases()));
  g.mark_output("dw", gradient(g, loss, wrt)[0]);
  return std::move(run_graph(backend, g, feeds_of(glm), kDeclared).at("dw"));
}

// The angle between a and a + step.
double turn(std::span<const double> a, std::span<const double> step) {
  const double along = mean_product(a, step) / mean_product(a, a);
  std::vector<double> across(step.begin(), step.end());
  for (std::size_t i = 0; i < across.size(); ++i) across[i] -= along * a[i];
  return std::atan2(length(across), length(a) * (1 + along));
}

struct Step {
  double angle, gradient;  // the length of the gradient
  double row_cosine = 0;   // the largest |cos| between a row of W and its gradient
  double cosine = 0;       // between W and its gradient
};

Step take_step(Backend& backend, const Glm& glm, double scale, const Tensor& targets) {
  const Glm at = glm.with(glm.x, scaled(glm.w, scale));
  const Tensor dw = weight_gradient(backend, at, targets), step = scaled(dw, -kRate);
  const std::span<const double> w = at.w.as<double>(), d = dw.as<double>();
  Step result{turn(w, step.as<double>()), length(d), 0, std::abs(cosine(w, d))};
  for (std::int64_t i = 0; i < glm.outputs(); ++i) {
    take_largest(result.row_cosine, std::abs(cosine(row(at.w, i), row(dw, i))));
  }
  return result;
}

void add_model(const std::string& norm, const std::vector<Step>& steps, Result& result) {
  const Step& one = steps[1];
  double turned = 0, slope = 0, row_cosine = 0, whole = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double s = kScales[i];
    take_largest(turned, std::abs(std::tan(steps[i].angle) * s * s / std::tan(one.angle) - 1));
    take_largest(slope, std::abs(steps[i].gradient * s / one.gradient - 1));
    take_largest(row_cosine, steps[i].row_cosine);
    take_largest(whole, steps[i].cosine);
  }
  if (norm == "none") {
    result.above("none: |dW| is not as 1 / s, relative", slope, 0.1);
    return result.above("none: |cos| of a row of W and its gradient", row_cosine, 0.1);
  }
  result.at_most(norm + ": error of tan(angle) as 1 / s^2", turned, kRounding);
  result.at_most(norm + ": error of |dW| as 1 / s", slope, kRounding);
  result.at_most(norm + ": |cos| of W and its gradient", whole, kRounding);
  if (norm == "layernorm") {
    result.above("layernorm: |cos| of a row of W and its gradient", row_cosine, 1e-3);
  } else {
    result.at_most(norm + ": |cos| of a row of W and its gradient", row_cosine, kRounding);
  }
}

// Targets so large that batchnorm turns by kAngleAtOne at scale 1: its gradient is linear in them.
Tensor targets_for(Backend& backend, const Glm& batchnorm, const Tensor& unit) {
  const double wanted = std::tan(kAngleAtOne / 180 * std::numbers::pi);
  return scaled(unit, wanted / std::tan(take_step(backend, batchnorm, 1, unit).angle));
}

}  // namespace

void add_steps(const Options& options, std::span<const Glm> models, Result& result) {
  const auto batchnorm =
      std::ranges::find_if(models, [](const Glm& glm) { return glm.norm == "batchnorm"; });
  const Tensor unit = normal({batchnorm->cases(), batchnorm->outputs()}, options.seed, "targets");
  const Tensor targets = targets_for(options.backend, *batchnorm, unit);
  Table table{"one step at rate 0.1 from s W: how far W turns",
              {{"norm", "s", "angle, degrees", "|dW|", "|cos(W, dW)|"}}};
  for (const Glm& glm : models) {
    std::vector<Step> steps;
    for (double s : kScales) {
      const Step& step = steps.emplace_back(take_step(options.backend, glm, s, targets));
      table.rows.push_back(
          {glm.norm, fmt::format("{}", s), fmt::format("{:.3f}", degrees(step.angle)),
           fmt::format("{:.4g}", step.gradient), fmt::format("{:.1e}", step.cosine)});
    }
    add_model(glm.norm, steps, result);
    if (glm.norm != "batchnorm") continue;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      result.near(fmt::format("batchnorm: angle at s = {}, degrees", kScales[i]),
                  degrees(steps[i].angle), kAngles[i], i == 3 ? 0.0005 : 0.005);
    }
  }
  result.tables.push_back(std::move(table));
}

}  // namespace keel::study
