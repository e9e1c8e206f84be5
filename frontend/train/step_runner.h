// Feeds and starts the training steps of a run, and hands over what they give when it has arrived:
// a device works behind the host, which must not wait for it.
#pragma once

#include <memory>
#include <vector>

#include "frontend/data/batcher.h"
#include "frontend/nn/net.h"
#include "frontend/train/config.h"
#include "frontend/train/feeder.h"
#include "src/runtime/scalars.h"

namespace keel::train {

// Where a run stands before a step.
struct StepPlace {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // epochs completed
  std::int64_t batch = 0;  // micro-batches done of the current epoch
};

struct StepResult {
  StepPlace place;
  double lr = 0, grad_norm = 0;
  std::vector<double> losses;   // of its micro-batches
  double loss = 0;              // their mean
  std::vector<double> watched;  // in the order of watches(); empty when the step was not looked at
};

class StepRunner {
 public:
  // Compiles the step and creates its variables. Throws Error{kUsage} when the batches do not fit
  // the data.
  StepRunner(Backend& backend, Variables& variables, const Config& config,
             const data::Dataset& rows);

  std::int64_t steps_per_epoch() const { return batcher_.steps() / config_.train().accumulate; }
  std::int64_t total_steps() const;
  // What layers watch. It is sent in the steps that are logged and, since a warning is most likely
  // at the start, in the first 64; of the last micro-batch.
  const std::vector<nn::Watch>& watches() const { return watches_; }

  // Gives first values to the parameters that take them from data: from the first batch.
  void initialize();

  // Starts a step; results that are due must have been looked at.
  void start(const StepPlace& place);
  // How many results have to be waited for before the next step starts: half of them when 2 N are
  // out, N being train.log_every or, if that is less, 64. A device thus never runs out of work, and
  // is waited for once in N steps.
  std::int64_t due() const { return started_ < std::ssize(slots_) ? 0 : started_ / 2; }
  // The result of the oldest step that it has not given yet. Null when there is none, or when it is
  // not there and should not be waited for. Throws Error{kDiverged} naming the first node whose
  // value is not finite: on a device that has gone on since, with the step's data but the weights
  // of now.
  const StepResult* next(bool wait);

 private:
  struct Slot {
    StepPlace place;
    double lr = 0;
    Scalars scalars;  // a loss each micro-batch, the gradient norm, perhaps what is watched
  };
  bool is_watched(std::int64_t step) const;
  void feed(Program& program, const StepPlace& place, std::int64_t micro_batch);
  double feed_rate(const StepPlace& place);
  void read(const Slot& slot);
  void check_finite();

  Backend& backend_;
  Variables& variables_;
  const Config& config_;
  std::vector<nn::Watch> watches_;
  data::Batcher batcher_;
  Feeder feeder_;
  std::unique_ptr<Program> step_, accumulate_;
  Tensor lr_{DType::kF32, {}}, step_number_{DType::kI32, {}}, tick_{DType::kI32, {}},
      first_row_{DType::kI32, {}};
  std::vector<Slot> slots_;  // a ring
  std::int64_t oldest_ = 0, started_ = 0;
  StepResult result_;
};

}  // namespace keel::train
