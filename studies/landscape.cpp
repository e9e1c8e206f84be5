// The roughness of the loss along its gradient while a network trains, with norms and without
// (Santurkar et al. 2018, figure 4).
#include <algorithm>

#include "studies/gradient_probe.h"
#include "studies/list.h"
#include "studies/mini_jobs.h"
#include "studies/summary.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kLandscapeSteps = 60, kLandscapeEvery = 5;
constexpr int kLandscapeSeeds = 3;  // of a task; the miniature has one, of which every figure holds

struct LandscapeLine {
  std::int64_t step = 0;
  double loss = 0;
  Landscape landscape;

  double loss_band() const { return landscape.loss_max - landscape.loss_min; }
  double gradient_band() const { return landscape.gradient_max - landscape.gradient_min; }
};

std::vector<LandscapeLine> landscapes_of(Backend& backend, const train::Job& job) {
  Training training(backend, job);
  GradientProbe probe(backend, job);
  std::vector<LandscapeLine> lines;
  const auto expect = [&](std::int64_t step, const task::Batch& batch) {
    if (step % kLandscapeEvery != 0) return;
    probe.take(batch, training.variables());
    const auto slope_at = [&](const Weights& w) { return probe.at(w); };
    const Weights theta = probe.read(training.variables());
    lines.push_back({step, 0, landscape_along(slope_at, theta, job.train().lr)});
  };
  const auto look = [&](const TrainedStep& s) {
    if (s.step % kLandscapeEvery == 0) lines.back().loss = s.loss;
  };
  training.run({.expect = expect, .look = look});
  return lines;
}

std::vector<double> over_steps(const std::vector<LandscapeLine>& lines,
                               double (*of)(const LandscapeLine& line)) {
  std::vector<double> values;
  for (const LandscapeLine& line : lines) values.push_back(of(line));
  return values;
}

void add_lines(const std::string& norm, const std::string& seed,
               const std::vector<LandscapeLine>& lines, Table& table) {
  for (const LandscapeLine& line : lines) {
    const Landscape& l = line.landscape;
    auto& cells =
        table.rows.emplace_back(std::vector<std::string>{norm, fmt::format("{}", line.step)});
    for (const double value :
         {line.loss, l.loss_min, l.loss_max, l.gradient_min, l.gradient_max, l.beta, l.lipschitz}) {
      cells.push_back(fmt::format("{:.4g}", value));
    }
    cells.push_back(seed);
  }
}

// Without a task, the deep residual network of the miniatures on drawn vectors, with its own rate.
train::Job landscape_job(const Options& options, const std::string& norm, int i) {
  if (!options.task.empty()) {
    return zoo_job_of_one_batch(
        options, i, {options.task, norm, kLandscapeSteps, descent_settings(options.task)});
  }
  return vector_job(options, i, {.norm = norm, .steps = kLandscapeSteps}).with(options.settings);
}

struct LandscapeFigure {
  const char* name;
  double (*of)(const LandscapeLine& line);
};
const LandscapeFigure kLandscapeFigures[] = {
    {"loss band", [](const LandscapeLine& l) { return l.loss_band(); }},
    {"gradient band", [](const LandscapeLine& l) { return l.gradient_band(); }},
    {"beta", [](const LandscapeLine& l) { return l.landscape.beta; }},
    {"lip", [](const LandscapeLine& l) { return l.landscape.lipschitz; }}};

using LandscapeSeeds = std::vector<std::vector<LandscapeLine>>;  // a training each
using Landscapes = std::map<std::string, LandscapeSeeds>;

std::vector<LandscapeFigures> figures_of(const LandscapeSeeds& seeds) {
  std::vector<LandscapeFigures> all;
  for (const std::vector<LandscapeLine>& lines : seeds) {
    LandscapeFigures& figures = all.emplace_back();
    for (const LandscapeFigure& figure : kLandscapeFigures) {
      figures.emplace_back(figure.name, over_steps(lines, figure.of));
    }
  }
  return all;
}

// Each figure without a norm, as a multiple of that with one.
void add_landscape_checks(const Options& options, const Landscapes& of, Result& result) {
  const auto none = of.find("none");
  if (none == of.end()) return;
  for (const auto& [norm, seeds] : of) {
    if (norm == "none") continue;
    judge_landscape({options.task, norm}, figures_of(none->second), figures_of(seeds), result);
  }
}

Drawing landscape_drawing(const Landscapes& of) {
  Drawing drawing{
      "loss-band",
      {.title = "loss before a step (line), and its range along the gradient from half the "
                "rate to four times it (band), first seed",
       .x_label = "updates",
       .y_label = "loss",
       .log_y = true,
       .series = {}}};
  for (const auto& [norm, seeds] : of) {
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = norm;
    for (const LandscapeLine& line : seeds.front()) {
      series.x.push_back(double(line.step));
      series.y.push_back(line.loss);
      series.low.push_back(line.landscape.loss_min);
      series.high.push_back(line.landscape.loss_max);
    }
  }
  return drawing;
}

}  // namespace

Result landscape(const Options& options) {
  check(!options.task.empty() || (options.data.empty() && options.recipe.empty()),
        ErrorKind::kUsage, "[landscape] --task: expected one beside --data or --recipe, got none");
  Table all{"along the gradient, from half the rate to four times it",
            {{"norm", "step", "loss", "loss_min", "loss_max", "gp_min", "gp_max", "beta", "lip",
              "seed"}}};
  Table medians{"medians over the steps", {{"norm", "seed"}}};
  for (const LandscapeFigure& figure : kLandscapeFigures) {
    medians.rows[0].push_back(figure.name);
  }
  Landscapes of;
  const int seeds = seeds_of(options, options.task.empty() ? 1 : kLandscapeSeeds);
  for (const std::string& norm : distinct_norms_of(options, {"none", "batchnorm", "layernorm"})) {
    for (int i = 0; i < seeds; ++i) {
      const train::Job job = landscape_job(options, norm, i);
      const auto& lines = of[norm].emplace_back(landscapes_of(options.backend, job));
      const std::string seed = fmt::format("{}", options.seed + std::uint64_t(i));
      add_lines(norm, seed, lines, all);
      auto& cells = medians.rows.emplace_back(std::vector<std::string>{norm, seed});
      for (const LandscapeFigure& figure : kLandscapeFigures) {
        cells.push_back(fmt::format("{:.4g}", quantile(over_steps(lines, figure.of), 0.5)));
      }
    }
  }
  Result result;
  result.tables = {std::move(medians), std::move(all)};
  result.drawings = {landscape_drawing(of)};
  result.seeds = std::size_t(seeds);
  add_landscape_checks(options, of, result);
  return result;
}

}  // namespace keel::study
