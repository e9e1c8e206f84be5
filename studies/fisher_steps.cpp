#include "studies/fisher_steps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr double kRate = 0.1;

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

StepNumbers take_step(Backend& backend, const Glm& glm, double scale, const Tensor& targets) {
  const Glm at = glm.with(glm.x, scaled(glm.w, scale));
  const Tensor dw = weight_gradient(backend, at, targets), step = scaled(dw, -kRate);
  const std::span<const double> w = at.w.as<double>(), d = dw.as<double>();
  StepNumbers result{turn(w, step.as<double>()), length(d), 0, std::abs(cosine(w, d))};
  for (std::int64_t i = 0; i < glm.outputs(); ++i) {
    take_largest(result.row_cosine, std::abs(cosine(row(at.w, i), row(dw, i))));
  }
  return result;
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
    std::vector<StepNumbers> steps;
    for (double s : kStepScales) {
      const StepNumbers& step = steps.emplace_back(take_step(options.backend, glm, s, targets));
      table.rows.push_back(
          {glm.norm, fmt::format("{}", s), fmt::format("{:.3f}", degrees(step.angle)),
           fmt::format("{:.4g}", step.gradient), fmt::format("{:.1e}", step.cosine)});
    }
    judge_steps(glm.norm, steps, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace keel::study
