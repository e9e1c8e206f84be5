// Quality of the vectors of skip-thoughts, which were trained to predict neighbours: regressions
// on them classify sentences and rate pairs (Kiros et al. 2015, section 3; Ba et al. 2016, table
// 3).
#include "frontend/train/run_state.h"
#include "studies/list.h"
#include "studies/training.h"
#include "studies/transfer_probe.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kTransferSteps = 300;

Table task_table() {
  return {"transfer, by nested cross-validation; SICK on its test pairs",
          {{"network", "task", "value"}}};
}

// Runs that were trained before.
void probe_runs(const Options& options, train::Progress& progress, Table& tasks) {
  for (const std::string& path : options.runs) {
    const auto [name, file, job] = open_run(options, path);
    Variables variables(options.backend, 0);
    train::Evaluator evaluator(options.backend, variables, job);
    evaluator.declare();
    train::load_finite(file, path, variables);
    const TransferProbe probe(
        job, [&](task::Decoder& decoder) { evaluator.decode(decoder); }, options, progress);
    probe.add_tasks(tasks, path);
  }
}

// Says how far a training is.
StepObserver told_steps(train::Progress& progress, const std::string& norm, std::int64_t steps) {
  StepObserver observer;
  observer.look = [&progress, norm, steps](const TrainedStep& step) {
    progress.update(
        double(step.step + 1) / double(steps),
        fmt::format("{}: training, step {}/{} loss {:.4f}", norm, step.step + 1, steps, step.loss));
  };
  return observer;
}

// Networks that are trained here, before and after their training.
void probe_trainings(const Options& options, train::Progress& progress, Result& result,
                     Table& tasks) {
  Table topics{"topics of 1,000 held-out sentences of stories",
               {{"norm", "nll, nats a word", "untrained %", "trained %"}}};
  for (const std::string& norm : norms_of(options, {"none", "layernorm"})) {
    const train::Job job =
        zoo_job(options, 0, {task_of(options, "skip_thoughts"), norm, kTransferSteps});
    Training training(options.backend, job);
    const TransferProbe probe(
        job, [&](task::Decoder& decoder) { training.decode(decoder); }, options, progress);
    const bool tells_stories = job.data().source == "builtin";
    const double before = tells_stories ? probe.topics() : 0;
    training.run(told_steps(progress, norm, job.train().max_steps));
    if (!options.data.empty()) probe.add_tasks(tasks, norm);
    if (!tells_stories) continue;
    const double nll = training.evaluate(task::Split::kTest).at("nll"), after = probe.topics();
    topics.rows.push_back({norm, fmt::format("{:.4f}", nll), fmt::format("{:.1f}", before),
                           fmt::format("{:.1f}", after)});
    judge_topics(norm, before, after, result);
  }
  if (topics.rows.size() > 1) result.tables.push_back(std::move(topics));
}

}  // namespace

Result transfer(const Options& options) {
  Result result;
  Table tasks = task_table();
  train::Progress progress(options.quiet);
  options.runs.empty() ? probe_trainings(options, progress, result, tasks)
                       : probe_runs(options, progress, tasks);
  check(options.runs.empty() || tasks.rows.size() > 1, ErrorKind::kIo,
        "[transfer] --data: expected sentences of MR, CR, SUBJ, MPQA or SICK in {}, got none",
        options.data.empty() ? "a folder" : options.data);
  if (tasks.rows.size() > 1) result.tables.push_back(std::move(tasks));
  return result;
}

}  // namespace keel::study
