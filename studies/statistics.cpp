// The distance of batch statistics from running ones while a task trains, at one norm (Shen et al.
// 2020, figures 2 to 4). In a Transformer it is much larger, with more outliers, than in a network
// on images.
#include <algorithm>

#include "src/core/nearest.h"
#include "studies/batch_statistics.h"
#include "studies/list.h"
#include "studies/summary.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kStatisticsSteps = 90;

// The Transformer of the recipe laptop takes minutes.
task::OptionValues settings_for(const std::string& task) {
  if (task != "text_classifier") return {};
  return {{"model.layers", "2"},
          {"model.width", "64"},
          {"model.feed_forward", "128"},
          {"train.batch", "1024"}};
}

struct StatisticsLine {
  std::int64_t step = 0;
  double epoch = 0;
  BatchStatistics found;
};
struct StatisticsRun {
  std::string task, norm, site;
  std::vector<StatisticsLine> lines;
};

// One training, with an eye on one norm.
class StatisticsWatch {
 public:
  StatisticsWatch(const Options& options, const std::string& task, const std::string& norm)
      : job_(zoo_job(options, 0, {task, norm, kStatisticsSteps, settings_for(task)})),
        training_(options.backend, job_),
        norm_(watched_norm(norm)),
        asked_(options.site),
        run_{task, norm, "", {}} {}

  StatisticsRun run() {
    const auto look = [this](const TrainedStep& s) {
      run_.lines.push_back(
          {s.step, s.epoch, batch_statistics(values_at(s.program, site_), before_, norm_)});
    };
    training_.run({[this](Graph& g) { mark_site(g); },
                   [this](std::int64_t, const task::Batch&) { read_before(); }, look});
    return std::move(run_);
  }

 private:
  void mark_site(Graph& g) {
    const std::vector<NormSite> sites = norm_sites(g, *norm_.op);
    std::vector<std::string> names;
    for (const NormSite& site : sites) names.push_back(site.name);
    check(!sites.empty(), ErrorKind::kUsage, "[statistics] {} has no {}", run_.task, run_.norm);
    const auto found =
        asked_.empty() ? sites.begin() : std::ranges::find(sites, asked_, &NormSite::name);
    check(found != sites.end(), ErrorKind::kUsage, "--site: {}", unknown_name(asked_, names));
    site_ = *found;
    run_.site = site_.name;
    mark_values(g, site_, norm_);
  }

  void read_before() {
    const auto leaf = [&](const char* name) {
      return training_.variables().read(site_.name + "/" + name, true).to(DType::kF64);
    };
    if (norm_.is_centred) before_.mean = leaf("running_mean");
    before_.square = leaf(norm_.is_centred ? "running_var" : "psi2");
    before_.gain = leaf("gain");
  }

  train::Job job_;
  Training training_;
  WatchedNorm norm_;
  std::string asked_;
  StatisticsRun run_;
  NormSite site_;
  NormBefore before_;
};

using StatisticsField = double BatchStatistics::*;

// After the first third of the steps, in which the running statistics come from 0 and 1.
std::vector<double> settled(const StatisticsRun& run, StatisticsField field) {
  std::vector<double> values;
  for (const StatisticsLine& line : run.lines) {
    if (line.step >= std::ssize(run.lines) / 3) values.push_back(line.found.*field);
  }
  return values;
}

struct StatisticsName {
  const char* name;
  StatisticsField field;
  bool of_mean;
};
constexpr StatisticsName kStatisticsNames[] = {
    {"dist_mu", &BatchStatistics::distance_mean, true},
    {"dist_square", &BatchStatistics::distance_square, false},
    {"gnorm_mu", &BatchStatistics::gradient_mean, true},
    {"gnorm_square", &BatchStatistics::gradient_square, false}};

Table statistics_summary(const std::vector<StatisticsRun>& runs) {
  Table table{"after the first third of the steps; square is sigma^2, or psi^2 of pn_v",
              {{"task", "norm", "site", "what", "median", "p90", "p99", "max", "p99 / median"}}};
  for (const StatisticsRun& run : runs) {
    for (const StatisticsName& what : kStatisticsNames) {
      if (what.of_mean && run.norm.starts_with("pn_v")) continue;
      const std::vector<double> values = settled(run, what.field);
      auto& cells = table.rows.emplace_back(
          std::vector<std::string>{run.task, run.norm, run.site, what.name});
      for (const double q : {0.5, 0.9, 0.99, 1.0}) {
        cells.push_back(fmt::format("{:.3g}", quantile(values, q)));
      }
      cells.push_back(fmt::format("{:.2f}", outlier_ratio(values)));
    }
  }
  return table;
}

Table statistics_lines(const std::vector<StatisticsRun>& runs) {
  Table table{"every step", {{"task", "norm", "step", "epoch"}}};
  for (const StatisticsName& what : kStatisticsNames) table.rows[0].push_back(what.name);
  for (const StatisticsRun& run : runs) {
    for (const StatisticsLine& line : run.lines) {
      auto& cells = table.rows.emplace_back(std::vector<std::string>{
          run.task, run.norm, fmt::format("{}", line.step), fmt::format("{:.3f}", line.epoch)});
      for (const StatisticsName& what : kStatisticsNames) {
        const bool is_there = !what.of_mean || !run.norm.starts_with("pn_v");
        cells.push_back(is_there ? fmt::format("{:.4g}", line.found.*what.field) : "");
      }
    }
  }
  return table;
}

Drawing statistics_drawing(const std::vector<StatisticsRun>& runs, const StatisticsName& what) {
  Drawing drawing{what.name,
                  {.title = what.name,
                   .x_label = "updates",
                   .y_label = what.name,
                   .log_y = true,
                   .series = {}}};
  for (const StatisticsRun& run : runs) {
    if (what.of_mean && run.norm.starts_with("pn_v")) continue;
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = run.task + " " + run.norm;
    for (const StatisticsLine& line : run.lines) {
      series.x.push_back(double(line.step));
      series.y.push_back(line.found.*what.field);
    }
  }
  return drawing;
}

const StatisticsRun* run_of(const std::vector<StatisticsRun>& runs, std::string_view task,
                            std::string_view norm) {
  const auto found = std::ranges::find_if(
      runs, [&](const StatisticsRun& run) { return run.task == task && run.norm == norm; });
  return found == runs.end() ? nullptr : &*found;
}

// Outliers of BatchNorm on text and on images; that psi^2 is calmer than sigma^2 was seen on
// translation.
void add_statistics_checks(const std::vector<StatisticsRun>& runs, Result& result) {
  const StatisticsRun *text = run_of(runs, "text_classifier", "batchnorm"),
                      *images = run_of(runs, "mnist_mlp", "batchnorm"),
                      *quadratic = run_of(runs, "text_classifier", "pn_v");
  for (const StatisticsName& what : kStatisticsNames) {
    if (!text || !images) break;
    judge_outliers(what.name, settled(*text, what.field), settled(*images, what.field), result);
  }
  if (!text || !quadratic) return;
  constexpr StatisticsField kSquare = &BatchStatistics::distance_square;
  judge_quadratic(settled(*quadratic, kSquare), settled(*text, kSquare), result);
}

}  // namespace

Result statistics(const Options& options) {
  std::vector<std::string> tasks{"text_classifier", "mnist_mlp"};
  if (!options.task.empty()) tasks = {options.task};
  std::vector<StatisticsRun> runs;
  for (const std::string& task : tasks) {
    for (const std::string& norm : norms_of(options, {"batchnorm", "pn_v"})) {
      runs.push_back(StatisticsWatch(options, task, norm).run());
    }
  }
  Result result;
  result.tables = {statistics_summary(runs), statistics_lines(runs)};
  for (const StatisticsName& what : kStatisticsNames) {
    result.drawings.push_back(statistics_drawing(runs, what));
  }
  add_statistics_checks(runs, result);
  return result;
}

}  // namespace keel::study
