// Everything that decides a run: a task with its options, training options and data options.
// Values come from a recipe (TOML), then from `--set section.key=value`, the last one winning.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/optim/clip.h"
#include "frontend/optim/optimizer.h"
#include "frontend/optim/schedule.h"
#include "frontend/task/task.h"
#include "frontend/train/compute.h"
#include "frontend/train/nonfinite.h"
#include "frontend/train/period.h"

namespace keel::train {

// The parameters that weight decay changes: those whose facts say so, or all of them.
enum class DecayedParameters { kWeights, kAll };
constexpr auto choice_words(DecayedParameters) {
  return std::to_array<std::string_view>({"weights", "all"});
}

// The rows that a norm over the batch takes its statistics from where an update has several shards
// or micro-batches: all of them, or those of each by itself.
enum class ShardStatistics { kSynchronised, kLocal };
constexpr auto choice_words(ShardStatistics) {
  return std::to_array<std::string_view>({"synchronised", "local"});
}

// fields() says what each option means, and which values it takes.
struct TrainOptions {
  std::int64_t batch = 128, epochs = 10, max_steps = 0, accumulate = 1, shards = 1;
  ShardStatistics statistics = ShardStatistics::kSynchronised;
  Compute compute = Compute::kF32;
  std::int64_t seed = 1;
  optim::Optimizer optimizer = optim::Optimizer::kAdam;
  double lr = 1e-3, momentum = 0, weight_decay = 0;
  DecayedParameters decay = DecayedParameters::kWeights;
  optim::EmbeddingUpdates embedding_updates = optim::EmbeddingUpdates::kExact;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  optim::Schedule schedule = optim::Schedule::kConstant;
  std::int64_t warmup = 0, step_every = 0;
  double step_factor = 0.1, min_factor = 0;
  std::vector<std::int64_t> milestones = {};
  double warmup_init_lr = 0, stop_min_lr = 0;
  optim::Clipping clip = optim::Clipping::kNone;
  double clip_limit = 1;
  Period eval_every{1, PeriodUnit::kEpochs}, test_every{0, PeriodUnit::kEpochs};
  std::int64_t patience = 0, checkpoint_every = 0, keep_checkpoints = 3, average_last = 0;
  std::int64_t log_every = 50;
  OnNonFinite on_nonfinite = OnNonFinite::kStop;
  std::int64_t nonfinite_limit = 10;
  std::string observe = {};

  // The fields of the updates, of their shards, and of the run around them.
  static constexpr auto update_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("batch", &T::batch, "rows of a micro-batch, or tokens if the task counts in tokens",
               between(1, 2147483647)),
        option("epochs", &T::epochs, "passes over the training rows", between(1, 2147483647)),
        option("max_steps", &T::max_steps,
               "number of updates after which the run ends; 0: no limit", at_least(0)),
        option("accumulate", &T::accumulate, "micro-batches that make up one update",
               between(1, 1000000)),
        option("seed", &T::seed, "seed of initial weights, order of rows, dropout and noise",
               at_least(0)),
        option("optimizer", &T::optimizer,
               "optimizer; adam_fairseq and adam_release are Adam as in fairseq, and as in the "
               "releases of skip-thoughts and order embeddings"),
        option("lr", &T::lr, "learning rate after the warm-up",
               {.least = 0, .most = 1e6, .above = true, .below = true}),
        option("momentum", &T::momentum, "momentum of sgd", fraction()),
        option("weight_decay", &T::weight_decay,
               "weight decay: decoupled from the gradient with adamw and adam_fairseq, added to "
               "the gradient otherwise",
               at_least(0)),
        option("decay", &T::decay, "parameters that decay: weights (no gains or biases), or all"),
        option("embedding_updates", &T::embedding_updates,
               "treatment of embedding rows that a batch does not use: exact updates them as the "
               "optimizer prescribes; lazy leaves them and their moments unchanged"),
        option("nesterov", &T::nesterov, "Nesterov's form of the momentum of sgd"),
        option("beta1", &T::beta1, "decay rate of Adam's mean of gradients", fraction()),
        option("beta2", &T::beta2, "decay rate of Adam's mean of squared gradients", fraction()),
        option("eps", &T::eps, "term that Adam adds to the root in the denominator", more_than(0)),
        option("schedule", &T::schedule, "schedule of the learning rate after the warm-up"),
        option("warmup", &T::warmup, "updates of the warm-up, in which the learning rate rises",
               at_least(0)),
        option("step_every", &T::step_every, "updates between two steps of the schedule step",
               described("0; >= 1 with the schedule step", at_least(0))),
        option("milestones", &T::milestones,
               "points of the schedule milestones, in percent of the run's updates, as "
               "\"[50,75]\"; each multiplies the learning rate by step_factor",
               described("[], or ascending percents, 1 to 99")),
        option("step_factor", &T::step_factor,
               "factor of the learning rate at each step of the schedules step and milestones",
               more_than(0)),
        option("min_factor", &T::min_factor,
               "final learning rate of the schedule cosine, as a fraction of lr", between(0, 1)),
        option("warmup_init_lr", &T::warmup_init_lr,
               "learning rate of the first update of the warm-up; 0: lr / warmup",
               described("0 to lr", at_least(0))),
        option("stop_min_lr", &T::stop_min_lr,
               "learning rate at which the run ends, once it has fallen to it after the warm-up; "
               "0: never",
               at_least(0)),
        option("clip", &T::clip,
               "clipping of gradients: by the norm of all together (global), by the norm of each "
               "tensor, or element by element"),
        option("clip_limit", &T::clip_limit,
               "largest norm, or absolute value of an element, that clipping permits",
               more_than(0))};
  }
  static constexpr auto shard_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("shards", &T::shards,
               "pieces of a batch whose gradients are summed in a fixed order; up to as many "
               "processes can share the work",
               between(1, 65536)),
        option("statistics", &T::statistics,
               "rows from which norms over the batch take statistics: all shards and micro-batches "
               "of an update (synchronised), or each one separately (local)"),
        option("compute", &T::compute,
               "type of the factors of matrix products in training; auto measures both and takes "
               "the faster one")};
  }
  static constexpr auto run_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("eval_every", &T::eval_every,
               "interval of validations, in epochs (1e) or updates (300u)",
               described("epochs as 1e or updates as 300u, at least 1", at_least(1))),
        option("test_every", &T::test_every,
               "interval of evaluations on the test set; 0e: only at the end",
               described("epochs as 1e or updates as 300u, or 0", at_least(0))),
        option("patience", &T::patience,
               "validations without an improvement after which the run ends; 0: no limit",
               at_least(0)),
        option("checkpoint_every", &T::checkpoint_every,
               "updates between checkpoints; 0: only after every epoch", at_least(0)),
        option("keep_checkpoints", &T::keep_checkpoints, "number of latest checkpoints to keep",
               between(1, 1000000)),
        option("average_last", &T::average_last,
               "number of latest checkpoints whose average is also written; 0: none",
               described("0 to keep_checkpoints", at_least(0))),
        option("log_every", &T::log_every, "updates between two lines of metrics.jsonl",
               at_least(1)),
        option("on_nonfinite", &T::on_nonfinite, "action if a loss or gradient is not finite"),
        option("nonfinite_limit", &T::nonfinite_limit,
               "consecutive skipped updates, or rollbacks, after which the run stops", at_least(1)),
        option("observe", &T::observe,
               "observers, which write to observations/ during the run (keel list observers)",
               described("observers, as KIND{key=value,...};KIND"))};
  }
  static constexpr auto fields() {
    return std::tuple_cat(update_fields(), shard_fields(), run_fields());
  }
  // Throws Error{kUsage} naming the option, what was expected and what was given.
  void validate() const;

  optim::OptimizerOptions optimizer_options() const;
  optim::ScheduleOptions schedule_options() const;
  // The learning rate of update `step` of `total`.
  double rate(std::int64_t step, std::int64_t total) const;
  optim::ClipOptions clip_options() const { return {clip, clip_limit}; }
  bool is_narrow() const { return compute == Compute::kBf16; }
  bool skips() const { return on_nonfinite == OnNonFinite::kSkip; }
};

struct DataOptions {
  std::string source = "builtin";
  std::int64_t train_rows = 0, seed = 1;

  static constexpr auto fields() {
    using T = DataOptions;
    return std::tuple{
        option("source", &T::source, "source of the data: builtin, or a folder with the real files",
               described("builtin, or a folder")),
        option("train_rows", &T::train_rows,
               "number of training rows to use: the first ones, or, of pictures in folders, a "
               "random choice by data.seed; 0: all",
               at_least(0)),
        option("seed", &T::seed, "seed of built-in data and of random splits", at_least(0))};
  }
  void validate() const;
  // Throws Error{kIo} if there is no such folder.
  task::DataRequest request() const;
};

// The settings of a recipe, or of a run's config.toml with its table [run], as text by
// "section.key". Neither names nor values are checked. Throws Error{kUsage} naming `where`, with
// the line for bad TOML.
task::OptionValues read_settings(std::string_view toml, const std::string& where);

// The name of an option here for one that other programs have: "lr" for "learning_rate"; "" for any
// other name.
std::string_view usual_name(std::string_view name);

class Config {
 public:
  explicit Config(std::unique_ptr<task::Task> task) : task_(std::move(task)) {}

  // Sets "train.lr", "model.norm", "data.source", .... Throws Error{kUsage} for an unknown key,
  // with the nearest known one, or a value that does not fit.
  void set(std::string_view key, std::string_view value);
  // Applies a recipe. `where` names it in errors: Error{kUsage} with the line for bad TOML.
  // The table [run] is for information and is skipped.
  void apply_toml(std::string_view toml, const std::string& where);
  // Throws Error{kUsage} unless all values fit together.
  void validate() const;
  // Every key with its meaning, its current value and its allowed values.
  std::vector<OptionFact> facts() const;
  // The fully resolved recipe; `run` becomes the table [run] (versions, hardware).
  std::string to_toml(const task::OptionValues& run = {}) const;

  const task::Task& task() const { return *task_; }
  const TrainOptions& train() const { return train_; }
  const DataOptions& data() const { return data_; }

 private:
  std::vector<std::string> keys() const;

  std::unique_ptr<task::Task> task_;
  TrainOptions train_;
  DataOptions data_;
};

}  // namespace keel::train
