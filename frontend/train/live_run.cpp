#include "frontend/train/live_run.h"

#include "frontend/train/evaluator.h"

namespace keel::train {
namespace {

task::StreamOptions training_options(const TrainOptions& options) {
  return {.batch = options.batch, .shuffle = static_cast<std::uint64_t>(options.seed)};
}

}  // namespace

LiveRun::LiveRun(Backend& backend, const Job& job, const RunOptions& options)
    : backend(backend),
      job(job),
      ranks(options.ranks ? *options.ranks : one),
      folder{options.folder},
      lock(options.resume && writes() ? lock_run(folder) : nullptr),
      train_rows(job.splits().stream(task::Split::kTrain, training_options(job.train()))),
      valid_rows(job.splits().stream(task::Split::kValid, evaluation_options(job))),
      variables(backend, static_cast<std::uint64_t>(job.train().seed)),
      steps(make_steps(backend, variables, job, *train_rows,
                       {ranks, options.reduction, options.at_once})) {}

std::unique_ptr<task::Stream> LiveRun::test_rows() const {
  return job.splits().stream(task::Split::kTest, evaluation_options(job));
}

ObservedUpdate LiveRun::observed(const StepPlace& place) {
  return {backend,        variables,        job,   *train_rows,
          steps->arena(), steps->carries(), place, steps->total_steps()};
}

bool LiveRun::is_epoch_over() const {
  return state.batch == train_rows->steps(static_cast<std::uint32_t>(state.epoch));
}

bool LiveRun::is_stale() const {
  const std::int64_t patience = job.train().patience;
  return patience > 0 && state.evaluations_since_best >= patience;
}

bool LiveRun::is_slow() const {
  const TrainOptions& options = job.train();
  return options.stop_min_lr > 0 && state.step >= options.warmup &&
         options.rate(state.step, steps->total_steps()) <= options.stop_min_lr;
}

bool LiveRun::is_done() const {
  return state.step >= steps->total_steps() || is_stale() || is_slow();
}

}  // namespace keel::train
