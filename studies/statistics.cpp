// The distance of batch statistics from running ones while a task trains, at one norm (Shen et al.
// 2020, figures 2 to 4). In a Transformer it is larger by orders of magnitude, with more outliers,
// than in a ResNet-20 on images.
#include <algorithm>

#include "src/core/nearest.h"
#include "studies/list.h"
#include "studies/statistics_tables.h"
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

// What is trained: a norm, with layer scaling in front of it or without.
struct StatisticsVariant {
  std::string task, norm;
  bool is_scaled = false;

  task::OptionValues settings() const {
    task::OptionValues all = settings_for(task);
    if (is_scaled) all.push_back({"model.scaling", "layerscaling"});
    return all;
  }
};

// PowerNorm scales its own rows unless it has no heads.
bool scales_rows(const train::Job& job) {
  const std::string norm = setting_of(job, "model.norm");
  return !setting_of(job, "model.scaling").empty() ||
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
  for (const std::string& norm : norms_of(options, {"batchnorm", "pn_v", "powernorm"})) {
    all.push_back({task, norm});
    if (has_controls && norm != "powernorm") all.push_back({task, norm, true});
  }
  return all;
}

// One training, with an eye on one norm.
class StatisticsWatch {
 public:
  StatisticsWatch(const Options& options, int i, const StatisticsVariant& of)
      : job_(zoo_job(options, i, {of.task, of.norm, kStatisticsSteps, of.settings()})),
        training_(options.backend, job_),
        norm_(watched_norm(of.norm)),
        asked_(options.site),
        run_{.task = of.task,
             .norm = of.norm,
             .label = of.norm + (of.is_scaled ? " + ls" : ""),
             .site = "",
             .seed = fmt::format("{}", options.seed + std::uint64_t(i)),
             .is_scaled = scales_rows(job_)} {
    check(job_.train().max_steps >= 3, ErrorKind::kUsage,
          "[statistics] --steps: expected at least 3, for the three parts of a training, got {}",
          job_.train().max_steps);
  }

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

// The trainings of a task whose norm is called so, its rows scaled or not, one a seed; none if the
// study did not run it. Of a norm that ran with several options they are those of the first.
using Trainings = std::vector<const StatisticsRun*>;
Trainings trainings_of(const std::vector<StatisticsRun>& runs, const std::string& task,
                       const std::string& norm, bool is_scaled) {
  Trainings found;
  for (const StatisticsRun& run : runs) {
    const bool is_called =
        run.task == task && name_of_norm(run.norm) == norm && run.is_scaled == is_scaled;
    if (is_called && (found.empty() || run.norm == found.front()->norm)) found.push_back(&run);
  }
  return found;
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
    const Trainings plain = trainings_of(runs, text, "batchnorm", false);
    judge_networks(plain.empty() ? trainings_of(runs, text, "batchnorm", true) : plain,
                   trainings_of(runs, images, "batchnorm", false), what, result);
  }
  for (const char* norm : {"pn_v", "powernorm"}) {
    for (const bool is_scaled : {false, true}) {
      judge_squares(trainings_of(runs, text, norm, is_scaled),
                    trainings_of(runs, text, "batchnorm", is_scaled), result);
    }
  }
}

}  // namespace

Result statistics(const Options& options) {
  std::vector<std::string> tasks{"translation", "cifar_resnet20"};
  if (!options.task.empty()) tasks = {options.task};
  std::vector<StatisticsRun> runs;
  for (const std::string& task : tasks) {
    for (const StatisticsVariant& variant : variants_of(options, task)) {
      for (int i = 0; i < seeds_of(options, kStatisticsSeeds); ++i) {
        runs.push_back(StatisticsWatch(options, i, variant).run());
      }
    }
  }
  Result result;
  result.tables = statistics_tables(runs);
  for (const StatisticsName& what : kStatisticsNames) {
    result.drawings.push_back(statistics_drawing(runs, what));
  }
  add_statistics_checks(runs, result);
  return result;
}

}  // namespace keel::study
