// Everything that decides a run: a model with its options, training options and data options.
// Values come from a recipe (TOML), then from `--set section.key=value`, the last one winning.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "frontend/optim/clip.h"
#include "frontend/optim/optimizer.h"
#include "frontend/optim/schedule.h"
#include "frontend/task/model.h"
#include "frontend/train/nonfinite.h"
#include "frontend/train/period.h"

namespace keel::train {

// What weight decay takes hold of: those parameters whose facts say so, or all of them.
enum class DecayedParameters { kWeights, kAll };
constexpr auto choice_words(DecayedParameters) {
  return std::to_array<std::string_view>({"weights", "all"});
}

struct TrainOptions {
  std::int64_t batch = 128;  // rows or tokens, as the model counts
  std::int64_t epochs = 10;
  std::int64_t max_steps = 0;   // stop after so many updates; 0: no limit
  std::int64_t accumulate = 1;  // micro-batches of `batch` in one update
  std::int64_t seed = 1;
  optim::Optimizer optimizer = optim::Optimizer::kAdam;
  double lr = 1e-3, momentum = 0, weight_decay = 0;
  DecayedParameters decay = DecayedParameters::kWeights;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  optim::Schedule schedule = optim::Schedule::kConstant;
  std::int64_t warmup = 0, step_every = 0;
  double step_factor = 0.1, min_factor = 0;
  double warmup_init_lr = 0;  // the rate of the first update of the warm-up; 0: lr / warmup
  double stop_min_lr = 0;     // stop when the rate has fallen to it behind the warm-up; 0: never
  optim::Clipping clip = optim::Clipping::kNone;
  double clip_limit = 1;
  Period eval_every{1, PeriodUnit::kEpochs};
  Period test_every{0, PeriodUnit::kEpochs};  // 0: test at the end only
  std::int64_t patience = 0;  // stop after so many evaluations without a better one; 0: never
  std::int64_t checkpoint_every = 0;  // updates; 0: after every epoch only
  std::int64_t keep_checkpoints = 3;
  std::int64_t average_last = 0;  // also write the average of so many last checkpoints
  std::int64_t log_every = 50;    // updates
  OnNonFinite on_nonfinite = OnNonFinite::kStop;
  std::int64_t nonfinite_limit = 10;  // updates left out in a row, or times gone back

  static constexpr auto fields() {
    using T = TrainOptions;
    return std::tuple{field("batch", &T::batch),
                      field("epochs", &T::epochs),
                      field("max_steps", &T::max_steps),
                      field("accumulate", &T::accumulate),
                      field("seed", &T::seed),
                      field("optimizer", &T::optimizer),
                      field("lr", &T::lr),
                      field("momentum", &T::momentum),
                      field("weight_decay", &T::weight_decay),
                      field("decay", &T::decay),
                      field("nesterov", &T::nesterov),
                      field("beta1", &T::beta1),
                      field("beta2", &T::beta2),
                      field("eps", &T::eps),
                      field("schedule", &T::schedule),
                      field("warmup", &T::warmup),
                      field("step_every", &T::step_every),
                      field("step_factor", &T::step_factor),
                      field("min_factor", &T::min_factor),
                      field("warmup_init_lr", &T::warmup_init_lr),
                      field("stop_min_lr", &T::stop_min_lr),
                      field("clip", &T::clip),
                      field("clip_limit", &T::clip_limit),
                      field("eval_every", &T::eval_every),
                      field("test_every", &T::test_every),
                      field("patience", &T::patience),
                      field("checkpoint_every", &T::checkpoint_every),
                      field("keep_checkpoints", &T::keep_checkpoints),
                      field("average_last", &T::average_last),
                      field("log_every", &T::log_every),
                      field("on_nonfinite", &T::on_nonfinite),
                      field("nonfinite_limit", &T::nonfinite_limit)};
  }
  // Throws Error{kUsage} naming the option, what was expected and what was given.
  void validate() const;

  optim::OptimizerOptions optimizer_options() const;
  optim::ScheduleOptions schedule_options() const;
  // The learning rate of update `step` of `total`.
  double rate(std::int64_t step, std::int64_t total) const;
  optim::ClipOptions clip_options() const { return {clip, clip_limit}; }
  bool skips() const { return on_nonfinite == OnNonFinite::kSkip; }
};

struct DataOptions {
  std::string source = "builtin";  // or a folder with the real data
  std::int64_t train_rows = 0;     // use only the first rows; 0: all
  std::int64_t seed = 1;           // of generated data

  static constexpr auto fields() {
    return std::tuple{field("source", &DataOptions::source),
                      field("train_rows", &DataOptions::train_rows),
                      field("seed", &DataOptions::seed)};
  }
  void validate() const;
  task::DataRequest request() const {
    return {source, train_rows, static_cast<std::uint64_t>(seed)};
  }
};

// The settings of a recipe, or of a run's config.toml with its table [run], as text by
// "section.key". Neither names nor values are judged. Throws Error{kUsage} naming `where`, with the
// line for bad TOML.
task::OptionValues read_settings(std::string_view toml, const std::string& where);

class Config {
 public:
  explicit Config(std::unique_ptr<task::Model> model) : model_(std::move(model)) {}

  // Sets "train.lr", "model.norm", "data.source", .... Throws Error{kUsage} for an unknown key,
  // with the nearest known one, or a value that does not fit.
  void set(std::string_view key, std::string_view value);
  // Applies a recipe. `where` names it in errors: Error{kUsage} with the line for bad TOML.
  // The table [run] is for information and is skipped.
  void apply_toml(std::string_view toml, const std::string& where);
  // Throws Error{kUsage} unless all values fit together.
  void validate() const;
  // The fully resolved recipe; `run` becomes the table [run] (versions, hardware).
  std::string to_toml(const task::OptionValues& run = {}) const;

  // Reads what the network depends on from the data (task::Model::prepare).
  void prepare() { model_->prepare(data_.request()); }
  void set_assets(const task::Assets& assets) { model_->set_assets(assets); }

  const task::Model& model() const { return *model_; }
  const TrainOptions& train() const { return train_; }
  const DataOptions& data() const { return data_; }

 private:
  std::vector<std::string> keys() const;

  std::unique_ptr<task::Model> model_;
  TrainOptions train_;
  DataOptions data_;
};

}  // namespace keel::train
