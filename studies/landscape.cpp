// The roughness of the loss along its gradient while a network trains, with norms and without
// (Santurkar et al. 2018, figure 4).
#include <algorithm>
#include <map>

#include "studies/landscape_observer.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kLandscapeSteps = 60;
constexpr train::Period kLandscapeEvery{5, train::PeriodUnit::kUpdates};
constexpr int kLandscapeSeeds = 3;  // of a task; the miniature has one, of which every figure holds

// A training, or a run.
struct LandscapeSeed {
  std::string number;
  std::vector<LandscapeLine> lines;
  std::string training = {};  // training_text
};
using LandscapeSeeds = std::vector<LandscapeSeed>;
using Landscapes = std::map<std::string, LandscapeSeeds>;  // by norm

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
  return vector_job(options, i,
                    {.norm = norm, .steps = kLandscapeSteps, .order = RowOrder::kEpochs})
      .with(options.settings);
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

std::vector<LandscapeFigures> figures_of(const LandscapeSeeds& seeds) {
  std::vector<LandscapeFigures> all;
  for (const LandscapeSeed& seed : seeds) {
    LandscapeFigures& figures = all.emplace_back();
    for (const LandscapeFigure& figure : kLandscapeFigures) {
      figures.emplace_back(figure.name, over_steps(seed.lines, figure.of));
    }
  }
  return all;
}

// Each figure without a norm, as a multiple of that with one.
void add_landscape_checks(const std::string& task, const Landscapes& of, Result& result) {
  const auto none = of.find("none");
  if (none == of.end()) return;
  for (const auto& [norm, seeds] : of) {
    if (norm == "none") continue;
    judge_landscape({task, norm}, figures_of(none->second), figures_of(seeds), result);
  }
}

Drawing landscape_drawing(const Landscapes& of) {
  Drawing drawing{
      "loss-band",
      {.title = "", .x_label = "update", .y_label = "loss", .log_y = true, .series = {}}};
  Sample sample;
  for (const auto& [norm, seeds] : of) {
    sample.add(norm, seeds.front().training, std::stoll(seeds.front().number));
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = norm;
    for (const LandscapeLine& line : seeds.front().lines) {
      series.x.push_back(double(line.step));
      series.y.push_back(line.loss);
      series.low.push_back(line.landscape.loss_min);
      series.high.push_back(line.landscape.loss_max);
    }
  }
  drawing.plot.title = sample.caption(
      "training loss; lines: before a step, bands: smallest to largest value along the gradient, "
      "from half the rate to four times it");
  return drawing;
}

Landscapes trained_landscapes(const Options& options) {
  Landscapes of;
  const int seeds = seeds_of(options, options.task.empty() ? 1 : kLandscapeSeeds);
  for (const std::string& norm : distinct_norms_of(options, {"none", "batchnorm", "layernorm"})) {
    for (int i = 0; i < seeds; ++i) {
      const train::Job job = landscape_job(options, norm, i);
      const auto observer = landscape_observer(job, {.every = kLandscapeEvery});
      LandscapeSeed& seed = of[norm].emplace_back(LandscapeSeed{
          fmt::format("{}", options.seed + std::uint64_t(i)), {}, training_text(job)});
      for (const ObservedLine& line : train_lines(options.backend, job, *observer)) {
        seed.lines.push_back(landscape_line(line.step, line.values));
      }
    }
  }
  return of;
}

// Runs of `keel train --observe landscape`.
Landscapes landscapes_of(const std::vector<StoredRun>& runs) {
  constexpr std::string_view kMayDiffer[] = {"model.norm"};
  expect_one_recipe("landscape", runs, kMayDiffer);
  Landscapes of;
  for (const StoredRun& run : runs) {
    const std::string number = fmt::format("{}", run.job.train().seed);
    LandscapeSeeds& seeds = of[setting_of(run.job, "model.norm")];
    check(
        std::ranges::find(seeds, number, &LandscapeSeed::number) == seeds.end() &&
            run.job.task().name() == runs.front().job.task().name(),
        ErrorKind::kUsage,
        "[landscape] --run: expected runs of one task that differ in norm or seed, got {} besides "
        "others",
        run.path);
    LandscapeSeed& seed = seeds.emplace_back(LandscapeSeed{number, {}, training_text(run)});
    for (const auto& values : observed_lines(run, "landscape")) {
      seed.lines.push_back(landscape_line(values.at("step"), values));
    }
  }
  const std::size_t count = of.begin()->second.size();
  for (const auto& [norm, seeds] : of) {
    check(seeds.size() == count, ErrorKind::kUsage,
          "[landscape] --run: expected as many runs of each norm, got {} of {} and {} of {}", count,
          of.begin()->first, seeds.size(), norm);
  }
  return of;
}

std::vector<Table> landscape_tables(const Landscapes& of) {
  Table all{"along the gradient, from half the rate to four times it",
            {{"norm", "step", "loss", "loss_min", "loss_max", "gp_min", "gp_max", "beta", "lip",
              "seed"}}};
  Table medians{"medians over the updates", {{"norm", "seed"}}};
  for (const LandscapeFigure& figure : kLandscapeFigures) {
    medians.rows[0].push_back(figure.name);
  }
  for (const auto& [norm, seeds] : of) {
    for (const LandscapeSeed& seed : seeds) {
      add_lines(norm, seed.number, seed.lines, all);
      auto& cells = medians.rows.emplace_back(std::vector<std::string>{norm, seed.number});
      for (const LandscapeFigure& figure : kLandscapeFigures) {
        cells.push_back(fmt::format("{:.4g}", quantile(over_steps(seed.lines, figure.of), 0.5)));
      }
    }
  }
  return {std::move(medians), std::move(all)};
}

}  // namespace

Result landscape(const Options& options) {
  const bool is_of_task = !options.task.empty() || !options.runs.empty();
  check(is_of_task || (options.data.empty() && options.recipe.empty()), ErrorKind::kUsage,
        "[landscape] --task: expected one beside --data or --recipe, got none");
  const std::vector<StoredRun> runs = open_runs(options);
  const Landscapes of = runs.empty() ? trained_landscapes(options) : landscapes_of(runs);
  Result result;
  result.tables = landscape_tables(of);
  result.drawings = {landscape_drawing(of)};
  result.seeds = of.begin()->second.size();
  add_landscape_checks(runs.empty() ? options.task : std::string(runs.front().job.task().name()),
                       of, result);
  const bool are_whole =
      runs.empty() ? is_to_the_end(options) : std::ranges::all_of(runs, is_whole);
  if (is_of_task && !are_whole) result.leave_open_what_fails();
  return result;
}

}  // namespace keel::study
