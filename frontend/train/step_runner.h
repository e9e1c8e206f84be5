// Runs the training steps of a run: feeds each one, starts it, and returns its result some steps
// later, because a device lags behind the host and the host should seldom wait for it.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/nn/net.h"
#include "frontend/train/feeder.h"
#include "frontend/train/job.h"
#include "src/runtime/program_cache.h"
#include "src/runtime/scalars.h"

namespace keel::train {

// The place of a run before a step.
struct StepPlace {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // epochs completed
  std::int64_t batch = 0;  // micro-batches done of the current epoch
};

struct StepResult {
  StepPlace place;
  std::int64_t micro_batches = 0;
  double items = 0;  // rows or tokens of the update: the loss is the mean over them
  double loss = 0, lr = 0, grad_norm = 0;
  std::vector<double> watched;  // in the order of watches(); empty when the step was not watched

  bool is_finite() const { return std::isfinite(loss) && std::isfinite(grad_norm); }
};

class StepRunner {
 public:
  // Compiles the step for the largest batch and creates the variables.
  StepRunner(Backend& backend, Variables& variables, const Job& job, task::Stream& stream);

  // Updates in an epoch; the last one may have fewer micro-batches.
  std::int64_t steps(std::uint32_t epoch) const;
  // The number of micro-batches of the update that starts at `place`.
  std::int64_t micro_batches(const StepPlace& place) const;
  std::int64_t total_steps() const { return total_.steps; }
  // The number of epochs that these steps complete.
  std::int64_t total_epochs() const { return total_.epochs; }
  // The quantities that layers watch. Their values, of the last micro-batch, come with the results
  // of logged steps and, because warnings are most likely at the start, of the first 64 steps.
  const std::vector<nn::Watch>& watches() const { return watches_; }
  // The number of programs compiled so far.
  std::int64_t programs() const { return step_.size() + accumulate_.size(); }
  // The arena of its programs, which others may use between steps.
  Arena& arena() { return arena_; }
  // The values that its steps leave to later steps.
  Carries& carries() { return carries_; }

  // Sets the parameters whose initial values depend on data; it takes the first batch for them.
  void initialize();

  // Starts a step. The caller must have taken all results that are due.
  void start(const StepPlace& place);
  // How many results the caller must wait for before it starts the next step: N once 2 N are
  // outstanding, else none, N being min(train.log_every, 64). A device thus never idles, and the
  // host waits once in N steps. Where an update may have to be undone, it is all of them, always.
  std::int64_t due() const;
  // The result of the oldest step that it has not returned yet, finite or not. Null when there is
  // none, or when it has not arrived and `wait` is false.
  const StepResult* next(bool wait);
  // Waits for all results that were not given yet, and forgets them.
  void drop();

  // Finds, for a message, the first value of an update that is not finite: its node, its element
  // and what the node read. Runs the update again with the same data and, where the device has run
  // later steps since, with the weights of now. Changes no parameter.
  std::string first_not_finite(const StepResult& result);
  // Restores what an update that is not finite overwrote: only its last micro-batch has a guard,
  // which keeps it from writing. Only with train.on_nonfinite = skip, before another step starts.
  void undo();

 private:
  struct Slot {
    StepPlace place;
    std::int64_t micro_batches = 0;
    double items = 0, lr = 0;
    Scalars scalars;  // each micro-batch's loss, the gradient norm, perhaps watched values
  };
  bool is_watched(std::int64_t step) const;
  struct Length {
    std::int64_t steps = 0, epochs = 0;
  };
  Length length() const;
  double items(const StepPlace& place) const;
  // One micro-batch of an update.
  struct Part {
    StepPlace place;
    double items = 0;  // of the whole update
    std::int64_t micro_batch = 0;
    std::int64_t first_row = 0;  // rows of its update before it
  };
  // Feeds the part to the program for its sizes, and returns that program.
  Program& feed(ProgramCache& programs, const Part& part);
  // The learning rate in float32, as the program has it.
  double rate(const StepPlace& place) const;
  void read(const Slot& slot);
  void keep();
  void clear_gathered();

  Backend& backend_;
  Variables& variables_;
  const Job& job_;
  task::Stream& stream_;
  Length total_;
  std::vector<nn::Watch> watches_;
  Feeder feeder_;
  Arena arena_;  // of all programs: one runs at a time
  Carries carries_;
  ProgramCache step_, accumulate_;
  std::int64_t rows_fed_ = 0;  // of the last batch
  std::vector<Slot> slots_;    // a ring
  std::int64_t oldest_ = 0, started_ = 0;
  StepResult result_;
  // For undo(): the old values that micro-batches before the last overwrite. Empty without skip.
  std::map<std::string, Tensor> kept_, kept_carries_;
};

}  // namespace keel::train
