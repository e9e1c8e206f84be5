// The distance of batch statistics from running ones while a task trains, at one norm (Shen et al.
// 2020, figures 2 to 4). In a Transformer it is larger by orders of magnitude, with more outliers,
// than in a ResNet-20 on images.
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

constexpr int kStatisticsSteps = 90, kStatisticsSeeds = 3;

// The Transformer of text_classifier's recipe takes minutes.
task::OptionValues settings_for(const std::string& task) {
  if (task != "text_classifier") return encoder_settings(task);
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
  std::string task, norm, site, seed;
  std::vector<StatisticsLine> lines;
};

// One training, with an eye on one norm.
class StatisticsWatch {
 public:
  StatisticsWatch(const Options& options, int i, const std::string& task, const std::string& norm)
      : job_(zoo_job(options, i, {task, norm, kStatisticsSteps, settings_for(task)})),
        training_(options.backend, job_),
        norm_(watched_norm(norm)),
        asked_(options.site),
        run_{task, norm, "", fmt::format("{}", options.seed + std::uint64_t(i)), {}} {}

  StatisticsRun run() {
    const auto look = [this](const TrainedStep& s) {
      run_.lines.push_back(
          {s.step, s.epoch, batch_statistics(values_at(s.program, site_), before_, norm_)});
    };
    training_.run({.mark = [this](Graph& g) { mark_site(g); },
                   .expect = [this](std::int64_t, const task::Batch&) { read_before(); },
                   .look = look});
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

// The values of one of the thirds of a training, 0 to 2. In the first the running statistics come
// from 0 and 1.
std::vector<double> values_in(const StatisticsRun& run, StatisticsField field, int third) {
  std::vector<double> values;
  const std::int64_t steps = std::ssize(run.lines);
  for (const StatisticsLine& line : run.lines) {
    if (3 * line.step / steps == third) values.push_back(line.found.*field);
  }
  return values;
}

// After the first third.
std::vector<double> settled(const StatisticsRun& run, StatisticsField field) {
  std::vector<double> values = values_in(run, field, 1);
  const std::vector<double> last = values_in(run, field, 2);
  values.insert(values.end(), last.begin(), last.end());
  return values;
}

struct StatisticsName {
  const char* name;
  StatisticsField field;
  bool of_mean, of_gradient;

  bool is_there(const std::string& norm) const {
    const WatchedNorm watched = watched_norm(norm);
    return (watched.is_centred || !of_mean) && (watched.has_gradient || !of_gradient);
  }
};
constexpr StatisticsName kStatisticsNames[] = {
    {"dist_mu", &BatchStatistics::distance_mean, true, false},
    {"dist_square", &BatchStatistics::distance_square, false, false},
    {"gnorm_mu", &BatchStatistics::gradient_mean, true, true},
    {"gnorm_square", &BatchStatistics::gradient_square, false, true}};

void add_summary(const StatisticsRun& run, const StatisticsName& what, Table& table) {
  constexpr const char* kThirds[] = {"first", "second", "last"};
  for (int third = 0; third < 3; ++third) {
    const std::vector<double> values = values_in(run, what.field, third);
    if (values.empty()) continue;
    auto& cells = table.rows.emplace_back(std::vector<std::string>{
        run.task, run.norm, run.site, run.seed, what.name, kThirds[third]});
    for (const double q : {0.5, 0.9, 0.99, 1.0}) {
      cells.push_back(fmt::format("{:.3g}", quantile(values, q)));
    }
    cells.push_back(fmt::format("{:.2f}", outlier_ratio(values)));
  }
}

Table statistics_summary(const std::vector<StatisticsRun>& runs) {
  Table table{"by thirds of the steps; square is sigma^2, or psi^2 of pn_v and powernorm",
              {{"task", "norm", "site", "seed", "what", "third", "median", "p90", "p99", "max",
                "p99 / median"}}};
  for (const StatisticsRun& run : runs) {
    for (const StatisticsName& what : kStatisticsNames) {
      if (what.is_there(run.norm)) add_summary(run, what, table);
    }
  }
  return table;
}

Table statistics_lines(const std::vector<StatisticsRun>& runs) {
  Table table{"every step", {{"task", "norm", "step", "epoch"}}};
  for (const StatisticsName& what : kStatisticsNames) table.rows[0].push_back(what.name);
  table.rows[0].push_back("seed");
  for (const StatisticsRun& run : runs) {
    for (const StatisticsLine& line : run.lines) {
      auto& cells = table.rows.emplace_back(std::vector<std::string>{
          run.task, run.norm, fmt::format("{}", line.step), fmt::format("{:.3f}", line.epoch)});
      for (const StatisticsName& what : kStatisticsNames) {
        const bool is_there = what.is_there(run.norm);
        cells.push_back(is_there ? fmt::format("{:.4g}", line.found.*what.field) : "");
      }
      cells.push_back(run.seed);
    }
  }
  return table;
}

// Of the first seed.
Drawing statistics_drawing(const std::vector<StatisticsRun>& runs, const StatisticsName& what) {
  Drawing drawing{what.name,
                  {.title = what.name,
                   .x_label = "updates",
                   .y_label = what.name,
                   .log_y = true,
                   .series = {}}};
  for (const StatisticsRun& run : runs) {
    if (!what.is_there(run.norm) || run.seed != runs.front().seed) continue;
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = run.task + " " + run.norm;
    for (const StatisticsLine& line : run.lines) {
      series.x.push_back(double(line.step));
      series.y.push_back(line.found.*what.field);
    }
  }
  return drawing;
}

// Of every seed, after the first third of the steps; empty if the study did not run it. Of a norm
// that ran with several options they are those of the first.
FigureSeeds seeds_of_run(const std::vector<StatisticsRun>& runs, const std::string& task,
                         const std::string& norm, StatisticsField field) {
  const auto is_called = [&](const StatisticsRun& run) {
    return run.norm.substr(0, run.norm.find('{')) == norm;
  };
  const auto first = std::ranges::find_if(runs, is_called);
  FigureSeeds seeds;
  for (const StatisticsRun& run : runs) {
    if (first != runs.end() && run.task == task && run.norm == first->norm)
      seeds.push_back(settled(run, field));
  }
  return seeds;
}

// BatchNorm in a Transformer and in a network on images; and psi^2 beside sigma^2 in a Transformer.
void add_statistics_checks(const std::vector<StatisticsRun>& runs, Result& result) {
  const std::string text = "translation", images = "cifar_resnet20", batch = "batchnorm";
  for (const StatisticsName& what : kStatisticsNames) {
    const FigureNumbers numbers{what.name, seeds_of_run(runs, text, batch, what.field),
                                seeds_of_run(runs, images, batch, what.field)};
    if (numbers.text.empty() || numbers.images.empty()) continue;
    judge_outliers(numbers, result);
    if (!what.of_gradient) judge_distances(numbers, result);
  }
  constexpr StatisticsField kDistance = &BatchStatistics::distance_square,
                            kGradient = &BatchStatistics::gradient_square;
  for (const char* norm : {"pn_v", "powernorm"}) {
    QuadraticNumbers of{norm, seeds_of_run(runs, text, norm, kDistance),
                        seeds_of_run(runs, text, batch, kDistance)};
    if (watched_norm(norm).has_gradient) {
      of.gradient = seeds_of_run(runs, text, norm, kGradient);
      of.batch_gradient = seeds_of_run(runs, text, batch, kGradient);
    }
    if (!of.distance.empty() && !of.batch_distance.empty()) judge_quadratic(of, result);
  }
}

}  // namespace

Result statistics(const Options& options) {
  std::vector<std::string> tasks{"translation", "cifar_resnet20"};
  if (!options.task.empty()) tasks = {options.task};
  std::vector<StatisticsRun> runs;
  for (const std::string& task : tasks) {
    for (const std::string& norm : norms_of(options, {"batchnorm", "pn_v", "powernorm"})) {
      for (int i = 0; i < seeds_of(options, kStatisticsSeeds); ++i) {
        runs.push_back(StatisticsWatch(options, i, task, norm).run());
      }
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
