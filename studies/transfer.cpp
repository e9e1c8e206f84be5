// Quality of the vectors of skip-thoughts, which were trained to predict neighbours: regressions
// on them classify sentences and rate pairs (Kiros et al. 2015, section 3; Ba et al. 2016, table
// 3).
#include <algorithm>
#include <map>
#include <set>

#include "frontend/report/spread.h"
#include "frontend/train/run_state.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/transfer_probe.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kTransferSteps = 300, kTransferSeeds = 3;

Table task_table() {
  return {"transfer, by nested cross-validation; SICK on its test pairs",
          {{"network", "task", "value", "deviation of the folds"}}};
}

// The measurements of one network, by task, in the order of the rows.
struct Probed {
  std::string norm;
  std::int64_t seed = 0;
  std::string training = {};  // training_text
  struct Value {
    std::string task;
    double value = 0, deviation = 0;  // of the folds, where it has any
  };
  std::vector<Value> values = {};
};

// The rows of the table from `begin` on, which are of one network.
Probed probed_from(const Table& tasks, std::size_t begin, const train::Job& job) {
  Probed probed{setting_of(job, "model.norm"), job.train().seed};
  for (std::size_t i = begin; i < tasks.rows.size(); ++i) {
    const std::string& deviation = tasks.rows[i][3];
    probed.values.push_back({tasks.rows[i][1], std::stod(tasks.rows[i][2]),
                             deviation == "-" ? 0 : std::stod(deviation)});
  }
  return probed;
}

// By how much layernorm is better than none on each task, of the seeds that both have. Of SICK's
// squared errors less is better.
void judge_tasks(const std::vector<Probed>& all, bool is_of_runs, Result& result) {
  std::map<std::string, SeedValues> better;
  for (const Probed& a : all) {
    for (const Probed& b : all) {
      const bool is_pair =
          name_of_norm(a.norm) == "layernorm" && b.norm == "none" && a.seed == b.seed;
      for (std::size_t i = 0; is_pair && i < std::min(a.values.size(), b.values.size()); ++i) {
        const std::string& task = a.values[i].task;
        const double margin = a.values[i].value - b.values[i].value;
        const bool less_is_better = task.find("MSE") != std::string::npos;
        better[task].push_back(less_is_better ? -margin : margin);
      }
    }
  }
  for (const auto& [task, values] : better) judge_transfer({task, is_of_runs, values}, result);
}

// A mark for every task, in the order of the table, with the deviation of its folds as in figure 3
// of Ba et al. 2016.
Drawing transfer_drawing(const std::vector<Probed>& all) {
  Drawing drawing{"transfer",
                  {.title = "",
                   .x_label = "row of the table",
                   .y_label = "value",
                   .series = {},
                   .whole_x = true}};
  Sample sample;
  for (const Probed& probed : all) {
    sample.add(probed.norm, probed.training, probed.seed);
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = fmt::format("{}, seed {}", probed.norm, probed.seed);
    for (const auto& [task, value, deviation] : probed.values) {
      series.x.push_back(double(series.x.size() + 1));
      series.y.push_back(value);
      series.low.push_back(value - deviation);
      series.high.push_back(value + deviation);
    }
  }
  drawing.plot.title = sample.caption(
      "value of each task of the table, in its unit; a line for each network, bands: one standard "
      "deviation over the folds, up and down");
  return drawing;
}

// Throws Error{kUsage} if two runs have one norm and seed, for the seed would count twice.
void check_distinct(const Options& options) {
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const std::string& path : options.runs) {
    const StoredRun run = open_run(options, path);
    check(seen.emplace(setting_of(run.job, "model.norm"), run.job.train().seed).second,
          ErrorKind::kUsage,
          "[transfer] --run: expected runs that differ in norm or seed, got {} besides another",
          path);
  }
}

// Runs that were trained before.
std::vector<Probed> probe_runs(const Options& options, train::Progress& progress, Table& tasks) {
  check_distinct(options);
  std::vector<Probed> all;
  for (const std::string& path : options.runs) {
    const StoredRun run = open_run(options, path);
    const auto& [name, file, job] = run;
    Variables variables(options.backend, 0);
    train::Evaluator evaluator(options.backend, variables, job);
    evaluator.declare();
    train::load_finite(file, path, variables);
    const TransferProbe probe(
        job, [&](task::Decoder& decoder) { evaluator.decode(decoder); }, options, progress);
    const std::size_t begin = tasks.rows.size();
    probe.add_tasks(tasks, path);
    all.push_back(probed_from(tasks, begin, job));
    all.back().training = training_text(run);
  }
  return all;
}

// Says how far a training is.
StepObserver told_steps(train::Progress& progress, const std::string& who, std::int64_t steps) {
  StepObserver observer;
  observer.look = [&progress, who, steps](const TrainedStep& step) {
    progress.update(
        double(step.step + 1) / double(steps),
        fmt::format("{}: training, step {}/{} loss {:.4f}", who, step.step + 1, steps, step.loss));
  };
  return observer;
}

// How well the topics of built-in stories are told apart, one value a seed.
struct TopicSeeds {
  SeedValues before, after, nll;
};
using Topics = std::map<std::string, TopicSeeds>;  // by norm

// Trains a network, and measures it before and after.
Probed probe_training(const Options& options, const train::Job& job, train::Progress& progress,
                      Table& tasks, Topics& topics) {
  const std::string norm = setting_of(job, "model.norm"),
                    who = fmt::format("{}, seed {}", norm, job.train().seed);
  Training training(options.backend, job);
  const TransferProbe probe(
      job, [&](task::Decoder& decoder) { training.decode(decoder); }, options, progress);
  const bool tells_stories = job.data().source == "builtin";
  const double before = tells_stories ? probe.topics() : 0;
  training.run(told_steps(progress, who, training.total_steps()));
  const std::size_t begin = tasks.rows.size();
  if (!options.data.empty()) probe.add_tasks(tasks, who);
  if (tells_stories) {
    TopicSeeds& of = topics[norm];
    of.before.push_back(before);
    of.after.push_back(probe.topics());
    of.nll.push_back(training.evaluate(task::Split::kTest).at("nll"));
  }
  Probed probed = probed_from(tasks, begin, job);
  probed.training = training_text(job);
  return probed;
}

Table topics_table(const Topics& topics) {
  Table table{"topics of 1,000 held-out sentences of stories, the median over seeds",
              {{"norm", "nll, nats a word", "untrained %", "trained %", "seeds"}}};
  for (const auto& [norm, of] : topics) {
    table.rows.push_back({norm, fmt::format("{:.4f}", report::median_of(of.nll)),
                          fmt::format("{:.1f}", report::median_of(of.before)),
                          fmt::format("{:.1f}", report::median_of(of.after)),
                          fmt::format("{}", of.nll.size())});
  }
  return table;
}

// Accuracies before and after training: the median over seeds, and their range.
Drawing topics_drawing(const Topics& topics, const std::vector<Probed>& all) {
  Drawing drawing{"topics",
                  {.title = "",
                   .x_label = "training",
                   .y_label = "accuracy, %",
                   .series = {},
                   .whole_x = true}};
  for (const auto& [norm, of] : topics) {
    io::PlotSeries& series = drawing.plot.series.emplace_back(io::PlotSeries{norm, {0, 1}, {}});
    for (const SeedValues& values : {of.before, of.after}) {
      series.y.push_back(report::median_of(values));
      series.low.push_back(std::ranges::min(values));
      series.high.push_back(std::ranges::max(values));
    }
  }
  Sample sample;
  for (const Probed& probed : all) sample.add(probed.norm, probed.training, probed.seed);
  drawing.plot.title = sample.caption(
      "topics of held-out sentences told apart, before training (0) and after it (1); lines: "
      "medians over seeds, bands: smallest to largest");
  return drawing;
}

void add_topics(const Topics& topics, const std::vector<Probed>& all, Result& result) {
  if (topics.empty()) return;
  result.tables.push_back(topics_table(topics));
  result.drawings.push_back(topics_drawing(topics, all));
  for (const auto& [norm, of] : topics)
    judge_topics(norm, differences(of.after, of.before), result);
}

// Networks that are trained here, before and after their training.
std::vector<Probed> probe_trainings(const Options& options, train::Progress& progress,
                                    Result& result, Table& tasks) {
  std::vector<Probed> all;
  Topics topics;
  for (const std::string& norm : distinct_norms_of(options, {"none", "layernorm"})) {
    for (int i = 0; i < seeds_of(options, kTransferSeeds); ++i) {
      const train::Job job =
          zoo_job(options, i, {task_of(options, "skip_thoughts"), norm, kTransferSteps});
      all.push_back(probe_training(options, job, progress, tasks, topics));
    }
  }
  add_topics(topics, all, result);
  return all;
}

}  // namespace

Result transfer(const Options& options) {
  Result result;
  Table tasks = task_table();
  train::Progress progress(options.quiet);
  const bool is_of_runs = !options.runs.empty();
  const std::string folder = options.data.empty() ? "builtin" : options.data;
  check((!is_of_runs && folder == "builtin") || !transfer_quantities(folder).empty(),
        ErrorKind::kIo,
        "[transfer] --data: expected sentences of MR, CR, SUBJ, MPQA or SICK in {}, got none",
        options.data.empty() ? "a folder" : folder);
  const std::vector<Probed> all = is_of_runs ? probe_runs(options, progress, tasks)
                                             : probe_trainings(options, progress, result, tasks);
  if (tasks.rows.size() > 1) {
    judge_tasks(all, is_of_runs, result);
    result.drawings.push_back(transfer_drawing(all));
    result.tables.push_back(std::move(tasks));
  }
  return result;
}

}  // namespace keel::study
