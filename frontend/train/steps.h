// The training steps of a run: each is fed and started, and gives its result some steps later.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "frontend/nn/net.h"
#include "frontend/train/feeder.h"
#include "frontend/train/job.h"
#include "src/runtime/program_cache.h"

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
  std::vector<double> monitored = {};  // in the order of monitors(); empty if it was not monitored

  bool is_finite() const { return std::isfinite(loss) && std::isfinite(grad_norm); }
};

class Steps {
 public:
  virtual ~Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Updates in an epoch; the last one may have fewer micro-batches.
  std::int64_t steps(std::uint32_t epoch) const;
  // The number of micro-batches of the update that starts at `place`.
  std::int64_t micro_batches(const StepPlace& place) const;
  std::int64_t total_steps() const { return total_.steps; }
  // The number of epochs that these steps complete.
  std::int64_t total_epochs() const { return total_.epochs; }
  // The quantities that layers monitor. Their values, of the last micro-batch, come with the
  // results of logged steps and, because warnings are most likely at the start, of the first 64
  // steps.
  const std::vector<nn::Monitor>& monitors() const { return monitors_; }
  // The number of programs compiled so far.
  virtual std::int64_t programs() const = 0;
  // The arena of its programs, which others may use between steps.
  Arena& arena() { return arena_; }
  // The values that its steps leave to later steps.
  Carries& carries() { return carries_; }

  // Sets the parameters whose initial values depend on data; it takes the first batch for them.
  void initialize();

  // The signal that has asked the run to end, or 0; the same in all ranks between the same steps.
  virtual int signal() const;

  // Starts a step. The caller must have taken all results that are due.
  virtual void start(const StepPlace& place) = 0;
  // The number of results that the caller must wait for before it starts the next step.
  virtual std::int64_t due() const = 0;
  // The result of the oldest step that it has not returned yet, finite or not. Null when there is
  // none, or when it has not arrived and `wait` is false.
  virtual const StepResult* next(bool wait) = 0;
  // Waits for all results that were not given yet, and forgets them.
  void drop();

  // Finds, for a message, the first value of an update that is not finite: its node, its element
  // and what the node read. Runs the update again with the same data and, where the device has run
  // later steps since, with the weights of now. Changes no parameter.
  virtual std::string first_not_finite(const StepResult& result) = 0;
  // Restores what an update that is not finite overwrote: only its last micro-batch has a guard,
  // which keeps it from writing. Only with train.on_nonfinite = skip, before another step starts.
  virtual void undo() = 0;

 protected:
  Steps(Backend& backend, Variables& variables, const Job& job, task::Stream& stream);

  bool is_watched(std::int64_t step) const;
  double items(const StepPlace& place) const;
  // The learning rate in float32, as the program has it.
  double rate(const StepPlace& place) const;

  Backend& backend_;
  Variables& variables_;
  const Job& job_;
  task::Stream& stream_;  // of whole batches
  Feeder feeder_;
  Arena arena_;  // of all programs: one runs at a time
  Carries carries_;
  std::vector<nn::Monitor> monitors_;

 private:
  struct Length {
    std::int64_t steps = 0, epochs = 0;
  };
  Length length() const;

  Length total_;
};

// A message's part: where in a step a value was found that is not finite.
std::string place_text(const NonFinite& found, std::int64_t batch);

}  // namespace keel::train
