// Runs the training steps of a run, each as one graph: feeds it, starts it, and returns its result
// some steps later, because a device runs later than the host, which should seldom wait.
#pragma once

#include <map>
#include <memory>

#include "frontend/train/steps.h"
#include "src/runtime/scalars.h"

namespace keel::train {

class StepRunner final : public Steps {
 public:
  // Compiles the step for the largest batch and creates the variables.
  StepRunner(Backend& backend, Variables& variables, const Job& job, task::Stream& stream);

  std::int64_t programs() const override { return step_.size() + accumulate_.size(); }
  void start(const StepPlace& place) override;
  // N once 2 N are outstanding, else none, N being min(train.log_every, 64). A device thus never
  // idles, and the host waits once in N steps. Where an update may have to be undone, it is all of
  // them, always.
  std::int64_t due() const override;
  const StepResult* next(bool wait) override;
  std::string first_not_finite(const StepResult& result) override;
  void undo() override;

 private:
  struct Slot {
    StepPlace place;
    std::int64_t micro_batches = 0;
    double items = 0, lr = 0;
    Scalars scalars;  // each micro-batch's loss, the gradient norm, perhaps monitored values
  };
  // One micro-batch of an update.
  struct Part {
    StepPlace place;
    double items = 0;  // of the whole update
    std::int64_t micro_batch = 0;
    std::int64_t first_row = 0;  // rows of its update before it
  };
  // Feeds the part to the program for its sizes, and returns that program.
  Program& feed(ProgramCache& programs, const Part& part);
  void read(const Slot& slot);
  void keep();
  void clear_gathered();

  ProgramCache step_, accumulate_;
  std::int64_t rows_fed_ = 0;  // of the last batch
  std::vector<Slot> slots_;    // a ring
  std::int64_t oldest_ = 0, started_ = 0;
  StepResult result_;
  // For undo(): the old values that micro-batches before the last overwrite. Empty without skip.
  std::map<std::string, Tensor> kept_, kept_carries_;
};

}  // namespace keel::train
