// The distance of batch statistics from running ones while a task trains, at one norm (Shen et al.
// 2020, figures 2 to 4). In a Transformer it is larger by orders of magnitude, with more outliers,
// than in a ResNet-20 on images.
#include <algorithm>
#include <optional>
#include <tuple>

#include "frontend/report/run.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/statistics_observer.h"
#include "studies/statistics_ranks.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kStatisticsSteps = 90, kStatisticsSeeds = 3;
constexpr train::Period kEveryUpdate{1, train::PeriodUnit::kUpdates};

// The Transformer of text_classifier's recipe takes minutes.
task::OptionValues settings_for(const std::string& task) {
  if (task != "text_classifier") return encoder_settings(task);
  return {{"model.layers", "2"},
          {"model.width", "64"},
          {"model.feed_forward", "128"},
          {"train.batch", "1024"}};
}

// The trained variant: a norm and, unless the recipe decides, layer scaling in front of it or none.
struct StatisticsVariant {
  std::string task, norm;
  std::optional<bool> is_scaled = {};

  task::OptionValues settings() const {
    task::OptionValues all = settings_for(task);
    if (!is_scaled) return all;
    all.push_back({"model.scaling", *is_scaled ? "layerscaling" : ""});
    all.push_back({"model.scaled_norms", ""});
    return all;
  }
};

// Whether model.scaling stands in front of the norm.
bool is_scaled_in_front(const train::Job& job) {
  if (setting_of(job, "model.scaling").empty()) return false;
  const std::string only = setting_of(job, "model.scaled_norms"),
                    name = name_of_norm(setting_of(job, "model.norm"));
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

// PowerNorm scales its own rows unless it has no heads.
bool scales_rows(const train::Job& job) {
  const std::string norm = setting_of(job, "model.norm");
  return is_scaled_in_front(job) ||
         (name_of_norm(norm) == "powernorm" && norm.find("heads=0") == std::string::npos);
}

// The options' norms as they are. By default those of the source, and in the Transformer batch norm
// and PN-V with layer scaling in front of them, too, unless a setting scales rows anyhow.
std::vector<StatisticsVariant> variants_of(const Options& options, const std::string& task) {
  const bool has_controls = options.norms.empty() && task == "translation" &&
                            std::ranges::none_of(options.settings, [](const auto& setting) {
                              return setting.first == "model.scaling";
                            });
  std::vector<StatisticsVariant> all;
  for (const std::string& norm : norms_of(options, source_norms(options, task))) {
    if (!has_controls) {
      all.push_back({task, norm});
      continue;
    }
    all.push_back({task, norm, false});
    if (name_of_norm(norm) != "powernorm") all.push_back({task, norm, true});
  }
  return all;
}

std::string label_of(const std::string& norm, bool is_scaled_in_front) {
  return norm + (is_scaled_in_front ? " + ls" : "");
}

void expect_thirds(std::size_t lines, const std::string& where) {
  check(lines >= 3, ErrorKind::kUsage,
        "[statistics] {}: expected at least 3 updates, for the three parts of a training, got {}",
        where, lines);
}

// A training here.
StatisticsRun trained_run(const Options& options, int i, const StatisticsVariant& of) {
  const train::Job job = zoo_job(options, i, {of.task, of.norm, kStatisticsSteps, of.settings()});
  const auto observer = statistics_observer(job, {.every = kEveryUpdate, .site = options.site});
  StatisticsRun run{.task = of.task,
                    .norm = of.norm,
                    .label = label_of(of.norm, is_scaled_in_front(job)),
                    .site = "",
                    .seed = fmt::format("{}", job.train().seed),
                    .training = training_text(job),
                    .is_scaled = scales_rows(job),
                    .is_whole = is_to_the_end(options)};
  for (const ObservedLine& line : train_lines(options.backend, job, *observer)) {
    run.site = line.values.at("site");
    run.lines.push_back(statistics_line(line.step, line.values));
  }
  expect_thirds(run.lines.size(), "--steps");
  return run;
}

// The test result of a run, of averaged weights if it has them, else of the best ones.
std::optional<double> tested_cost(const StoredRun& stored) {
  const task::MetricInfo metric = stored.job.task().metrics().front();
  const report::Run run = report::read_run(run_folder_of(stored.path));
  for (const char* weights : {"averaged", "best", "last"}) {
    const auto tested = run.test.find(weights);
    if (tested == run.test.end()) continue;
    for (const auto& [name, value] : tested->second) {
      if (name == metric.name) return metric.higher_is_better ? -value : value;
    }
  }
  return {};
}

// A run of `keel train --observe statistics`.
StatisticsRun stored_run(const StoredRun& stored) {
  const std::string norm = setting_of(stored.job, "model.norm");
  const bool is_in_front = is_scaled_in_front(stored.job);
  StatisticsRun run{.task = std::string(stored.job.task().name()),
                    .norm = norm,
                    .label = label_of(norm, is_in_front),
                    .site = "",
                    .seed = fmt::format("{}", stored.job.train().seed),
                    .training = training_text(stored),
                    .is_scaled = scales_rows(stored.job),
                    .is_whole = is_whole(stored),
                    .cost = tested_cost(stored)};
  for (const auto& values : observed_lines(stored, "statistics")) {
    run.site = values.value("site", "");
    run.lines.push_back(statistics_line(values.at("step"), values));
  }
  expect_thirds(run.lines.size(), "--run: " + stored.path);
  return run;
}

std::vector<StatisticsRun> stored_runs(const Options& options) {
  constexpr std::string_view kMayDiffer[] = {"model.norm", "model.final_norm", "model.scaling",
                                             "model.scaled_norms"};
  const std::vector<StoredRun> stored = open_runs(options);
  expect_one_recipe("statistics", stored, kMayDiffer);
  std::vector<StatisticsRun> runs;
  for (const StoredRun& one : stored) {
    StatisticsRun run = stored_run(one);
    const bool is_twice = std::ranges::any_of(runs, [&](const StatisticsRun& other) {
      return std::tie(other.task, other.label, other.seed) ==
             std::tie(run.task, run.label, run.seed);
    });
    check(!is_twice, ErrorKind::kUsage,
          "[statistics] --run: expected runs that differ in task, norm, scaling or seed, got {} "
          "besides another",
          one.path);
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<StatisticsRun> trained_runs(const Options& options) {
  std::vector<std::string> tasks{"translation", "cifar_resnet20"};
  if (!options.task.empty()) tasks = {options.task};
  std::vector<StatisticsRun> runs;
  for (const std::string& task : tasks) {
    for (const StatisticsVariant& variant : variants_of(options, task)) {
      for (int i = 0; i < seeds_of(options, kStatisticsSeeds); ++i) {
        runs.push_back(trained_run(options, i, variant));
      }
    }
  }
  return runs;
}

// The trainings of a task with a norm, its rows scaled or not, one a seed; none if the study did
// not run it.
using Trainings = std::vector<const StatisticsRun*>;
Trainings trainings_of(const std::vector<StatisticsRun>& runs, const std::string& task,
                       const std::string& norm, bool is_scaled) {
  Trainings found;
  for (const StatisticsRun& run : runs) {
    if (run.task == task && run.norm == norm && run.is_scaled == is_scaled) found.push_back(&run);
  }
  return found;
}

// The norms of one name that a task ran with, each with its options, in the order of the runs.
std::vector<std::string> norms_called(const std::string& name, const std::string& task,
                                      const std::vector<StatisticsRun>& runs) {
  std::vector<std::string> norms;
  for (const StatisticsRun& run : runs) {
    const bool is_new = std::ranges::find(norms, run.norm) == norms.end();
    if (run.task == task && name_of_norm(run.norm) == name && is_new) norms.push_back(run.norm);
  }
  return norms;
}

// Batch norm with the first options that it ran with.
Trainings batch_norm_of(const std::vector<StatisticsRun>& runs, const std::string& task,
                        bool is_scaled) {
  for (const std::string& norm : norms_called("batchnorm", task, runs)) {
    const Trainings found = trainings_of(runs, task, norm, is_scaled);
    if (!found.empty()) return found;
  }
  return {};
}

// A figure of every training in one of its parts.
template <class Part>
FigureSeeds figure_of(const Trainings& trainings, const Part& part) {
  FigureSeeds seeds;
  for (const StatisticsRun* run : trainings) seeds.push_back(part(*run));
  return seeds;
}

// BatchNorm in a Transformer and in a network on images.
void judge_networks(const Trainings& text, const Trainings& images, const StatisticsName& what,
                    Result& result) {
  const auto after_first = [&](const StatisticsRun& run) { return settled(run, what.field); };
  const auto second = [&](const StatisticsRun& run) { return values_in(run, what.field, 1); };
  const auto last = [&](const StatisticsRun& run) { return values_in(run, what.field, 2); };
  if (!text.empty() && !images.empty()) {
    const FigureNumbers numbers{what.name, figure_of(text, after_first),
                                figure_of(images, after_first)};
    judge_outliers(numbers, result);
    if (!what.of_gradient) judge_distances(numbers, result);
  }
  if (what.of_gradient) return;
  if (!text.empty()) {
    judge_growing({what.name, figure_of(text, second), figure_of(text, last)}, result);
  }
  if (!images.empty()) {
    judge_calming({what.name, figure_of(images, second), figure_of(images, last)}, result);
  }
}

// A norm with psi^2 beside batch norm, in a Transformer.
void judge_squares(const Trainings& of, const Trainings& batch, Result& result) {
  if (of.empty() || batch.empty()) return;
  const auto distances = [](const StatisticsRun& run) {
    return settled(run, &BatchStatistics::distance_square);
  };
  const auto gradients = [](const StatisticsRun& run) {
    return settled(run, &BatchStatistics::gradient_square);
  };
  QuadraticNumbers numbers{of.front()->label, batch.front()->label, figure_of(of, distances),
                           figure_of(batch, distances)};
  if (watched_norm(of.front()->norm).has_gradient) {
    numbers.gradient = figure_of(of, gradients);
    numbers.batch_gradient = figure_of(batch, gradients);
  }
  judge_quadratic(numbers, result);
}

void add_statistics_checks(const std::vector<StatisticsRun>& runs, Result& result) {
  const std::string text = "translation", images = "cifar_resnet20";
  for (const StatisticsName& what : kStatisticsNames) {
    if (!what.of_source) continue;
    const Trainings plain = batch_norm_of(runs, text, false);
    judge_networks(plain.empty() ? batch_norm_of(runs, text, true) : plain,
                   batch_norm_of(runs, images, false), what, result);
  }
  for (const char* name : {"pn_v", "powernorm"}) {
    for (const std::string& norm : norms_called(name, text, runs)) {
      for (const bool is_scaled : {false, true}) {
        judge_squares(trainings_of(runs, text, norm, is_scaled),
                      batch_norm_of(runs, text, is_scaled), result);
      }
    }
  }
}

}  // namespace

Result statistics(const Options& options) {
  const std::vector<StatisticsRun> runs =
      options.runs.empty() ? trained_runs(options) : stored_runs(options);
  Result result;
  result.tables = statistics_tables(runs);
  if (Table ranks = ranks_table(runs); ranks.rows.size() > 1) {
    result.tables.push_back(std::move(ranks));
  }
  for (const StatisticsName& what : kStatisticsNames) {
    result.drawings.push_back(statistics_drawing(runs, what));
  }
  add_statistics_checks(runs, result);
  if (!std::ranges::all_of(runs, &StatisticsRun::is_whole)) result.leave_open_what_fails();
  return result;
}

}  // namespace keel::study
