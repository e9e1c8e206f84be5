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

struct TrainOptions {
  std::int64_t batch = 128;  // rows or tokens, as the model counts
  std::int64_t epochs = 10;
  std::int64_t max_steps = 0;   // stop after this many updates; 0: no limit
  std::int64_t accumulate = 1;  // micro-batches of `batch` in one update
  std::int64_t shards = 1;      // contiguous pieces of a batch whose gradients are added up
  ShardStatistics statistics = ShardStatistics::kSynchronised;
  Compute compute = Compute::kF32;  // the factors of products
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
  std::vector<std::int64_t> milestones = {};  // percents of the updates
  double warmup_init_lr = 0;  // the rate of the first update of the warm-up; 0: lr / warmup
  double stop_min_lr = 0;     // stop when the rate has fallen to it after the warm-up; 0: never
  optim::Clipping clip = optim::Clipping::kNone;
  double clip_limit = 1;
  Period eval_every{1, PeriodUnit::kEpochs};
  Period test_every{0, PeriodUnit::kEpochs};  // 0: test at the end only
  std::int64_t patience = 0;  // stop after this many evaluations without a better one; 0: never
  std::int64_t checkpoint_every = 0;  // updates; 0: after every epoch only
  std::int64_t keep_checkpoints = 3;
  std::int64_t average_last = 0;  // also write the average of this many last checkpoints
  std::int64_t log_every = 50;    // updates
  OnNonFinite on_nonfinite = OnNonFinite::kStop;
  std::int64_t nonfinite_limit = 10;  // updates left out in a row, or rollbacks
  std::string observe = {};           // the run's observers; empty: none

  // The fields of the updates, of their shards, and of the run around them.
  static constexpr auto update_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("batch", &T::batch,
               "rows of a micro-batch, or tokens where the model counts in these",
               between(1, 2147483647)),
        option("epochs", &T::epochs, "times that all training rows are gone through",
               between(1, 2147483647)),
        option("max_steps", &T::max_steps, "the run ends after so many updates; 0: no limit",
               at_least(0)),
        option("accumulate", &T::accumulate, "micro-batches whose gradients make one update",
               between(1, 1000000)),
        option("seed", &T::seed, "of first weights, orders, dropout and noise", at_least(0)),
        option("optimizer", &T::optimizer,
               "how gradients change weights; adam_fairseq and adam_release are those of other "
               "programs"),
        option("lr", &T::lr, "the learning rate",
               {.least = 0, .most = 1e6, .above = true, .below = true}),
        option("momentum", &T::momentum, "of sgd", fraction()),
        option("weight_decay", &T::weight_decay,
               "the weights' decay: with adamw and adam_fairseq apart from the gradient, else as a "
               "part of it",
               at_least(0)),
        option("decay", &T::decay,
               "the parameters that weight decay applies to: only weights, not gains and biases, "
               "or all"),
        option("embedding_updates", &T::embedding_updates,
               "rows of a table that a batch does not look up: exact, they change as the optimizer "
               "has it, or lazy, they and their moments stay as they are"),
        option("nesterov", &T::nesterov, "of sgd: whether the momentum is Nesterov's"),
        option("beta1", &T::beta1, "of the adams: what is kept of the mean of gradients",
               fraction()),
        option("beta2", &T::beta2, "of the adams: what is kept of the mean of their squares",
               fraction()),
        option("eps", &T::eps, "of the adams: added to the root", more_than(0)),
        option("schedule", &T::schedule, "how the learning rate falls after the warm-up"),
        option("warmup", &T::warmup, "updates in which the learning rate rises", at_least(0)),
        option("step_every", &T::step_every, "of the schedule step: updates between two steps",
               described("0, or >= 1 with the schedule step", at_least(0))),
        option(
            "milestones", &T::milestones,
            "of the schedule milestones: percents of the run's updates, as \"[50,75]\"; after each "
            "of them the learning rate is step_factor times as large",
            described("[], or percents of 1 to 99, ascending")),
        option("step_factor", &T::step_factor,
               "of the schedules step and milestones: the factor of the learning rate at a step",
               more_than(0)),
        option("min_factor", &T::min_factor,
               "of the schedule cosine: the learning rate ends at so many times lr", between(0, 1)),
        option("warmup_init_lr", &T::warmup_init_lr,
               "the learning rate of the first update of the warm-up; 0: lr / warmup",
               described("0 to lr", at_least(0))),
        option("stop_min_lr", &T::stop_min_lr,
               "the run ends when the learning rate has fallen to this after the warm-up; 0: never",
               at_least(0)),
        option("clip", &T::clip,
               "how gradients are limited: all as one, each tensor, or each element"),
        option("clip_limit", &T::clip_limit, "the limit of the norm, or of an element",
               more_than(0))};
  }
  static constexpr auto shard_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("shards", &T::shards,
               "pieces of a batch whose gradients are added up in a fixed order; as many processes "
               "may share the work",
               between(1, 65536)),
        option("statistics", &T::statistics,
               "the rows that norms over the batch take statistics from: those of all shards and "
               "micro-batches of an update, synchronised, or those of each by itself, local"),
        option("compute", &T::compute,
               "the type of the factors of products while training: f32, bf16, or auto, the faster "
               "of both by a measurement")};
  }
  static constexpr auto run_fields() {
    using T = TrainOptions;
    return std::tuple{
        option("eval_every", &T::eval_every,
               "how often the validation is measured: epochs as 1e, or updates as 300u",
               described("epochs as 1e or updates as 300u, at least 1", at_least(1))),
        option("test_every", &T::test_every,
               "how often the test set is measured; 0e: at the end only",
               described("epochs as 1e or updates as 300u, or 0", at_least(0))),
        option("patience", &T::patience,
               "the run ends after so many validations without a better one; 0: never",
               at_least(0)),
        option("checkpoint_every", &T::checkpoint_every,
               "updates between checkpoints; 0: after every epoch only", at_least(0)),
        option("keep_checkpoints", &T::keep_checkpoints, "checkpoints that stay, the last so many",
               between(1, 1000000)),
        option("average_last", &T::average_last,
               "checkpoints whose average is written as well, the last so many; 0: none",
               described("0 to keep_checkpoints", at_least(0))),
        option("log_every", &T::log_every, "updates between two lines of metrics.jsonl",
               at_least(1)),
        option("on_nonfinite", &T::on_nonfinite,
               "what happens when a loss or gradient is not finite"),
        option("nonfinite_limit", &T::nonfinite_limit,
               "updates left out in a row, or times gone back, until the run stops after all",
               at_least(1)),
        option("observe", &T::observe,
               "what observers write into observations/ on the way (keel list observers); empty: "
               "nothing",
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
  std::string source = "builtin";  // or a folder with the real data
  std::int64_t train_rows = 0;     // use only the first rows; 0: all
  std::int64_t seed = 1;           // of generated data

  static constexpr auto fields() {
    using T = DataOptions;
    return std::tuple{
        option("source", &T::source, "builtin, or a folder with the real data",
               described("builtin, or a folder")),
        option("train_rows", &T::train_rows,
               "training rows that are used, the first so many, or of pictures in folders so many "
               "drawn by data.seed; 0: all",
               at_least(0)),
        option("seed", &T::seed, "of data that is made up, and of random splits", at_least(0))};
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
