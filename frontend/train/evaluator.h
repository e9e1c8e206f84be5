// Loss and metrics of a model on a whole split, in evaluation mode.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "frontend/train/config.h"
#include "frontend/train/feeder.h"
#include "src/runtime/program_cache.h"

namespace keel::train {

struct Measured {
  task::MetricInfo info;
  double value = 0;
  double sum = 0, count = 0;  // what it was formed of; both 0 when a scorer gave it
};

struct Evaluation {
  double loss = 0;  // sum over the items / items
  std::vector<Measured> metrics = {};
  std::int64_t rows = 0;
  double items = 0;

  // Throws Error{kUsage} for a metric that is not there.
  double at(std::string_view metric) const;
};

// "error 2.50 % +- 0.35, loss 0.0747, 2000 rows": a share has its binomial standard error.
std::string text(const Evaluation& evaluation);

// How a split is gone through: every row, in order.
task::StreamOptions evaluation_options(const Config& config);

class Evaluator {
 public:
  Evaluator(Backend& backend, Variables& variables, const Config& config);

  // Creates the parameters and states of evaluation, so that a checkpoint can be loaded into them.
  void declare();
  // Every row once: throws Error{kUsage} when the stream gives one twice or leaves one out.
  Evaluation run(task::Stream& stream);
  // Runs the batches of a stream and hands each over with the predictions of its rows.
  using Take = std::function<void(const task::Batch&, const std::map<std::string, Tensor>&)>;
  void predict(task::Stream& stream, const Take& take);
  // How many programs were compiled so far: one for each of the sizes met.
  std::int64_t programs() const { return programs_.size(); }

 private:
  Program& run_batch(const task::Batch& batch);

  Backend& backend_;
  Variables& variables_;
  const Config& config_;
  Feeder feeder_;
  Arena arena_;
  ProgramCache programs_;
};

}  // namespace keel::train
