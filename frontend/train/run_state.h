// The state of a run, and how it gets into and out of a checkpoint.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/train/job.h"
#include "src/runtime/carries.h"
#include "src/runtime/variables.h"

namespace keel::train {

// Everything besides the variables that a resumed run needs. The order of the data is a pure
// function of (seed, epoch), so epoch and batch say which rows come next.
struct RunState {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // epochs completed
  std::int64_t batch = 0;  // micro-batches done of the current epoch
  double epoch_loss = 0;   // sum over their items
  double epoch_items = 0;
  // Mean over the items of the last completed epoch; NaN: there is none, or it had no items.
  double train_loss = NAN;
  double best = 0;  // the first metric on the validation set, at its best; valid if best_step >= 0
  std::int64_t best_step = -1;  // no evaluation yet
  std::int64_t evaluations_since_best = 0;
  // The steps of the last train.keep_checkpoints checkpoints that the recipe asked for, ascending:
  // they are kept and averaged, and a rollback returns to the last of them. A checkpoint that an
  // interruption causes is none of them, so that resuming changes nothing.
  std::vector<std::int64_t> scheduled = {0};
  // The measurements that were due after this step and that an interruption left undone.
  std::int64_t undone = 0;
  std::int64_t skipped = 0;                 // updates, of all steps so far
  std::int64_t consecutive_non_finite = 0;  // bounded by train.nonfinite_limit
  std::string data;                         // data_print() of the run's data; empty: not known
  std::string backend;  // RunOptions::backend of the last step; empty: not known

  // Makes this step the last of `scheduled`, of which `most` stay. The start, which the recipe
  // gives anyway, is none of them as soon as there is another.
  void schedule(std::int64_t most);
};

// Writes variables, and carries under kCarryPrefix + their names, in the backend's storage type;
// state and resolved recipe are metadata. No carries: the network has none.
io::TensorFile to_checkpoint(const RunState& state, const Job& job, const Variables& variables,
                             const Carries* carries = nullptr);

// The inverse. Throws Error{kBadInput} naming `where` for a checkpoint of another model, with other
// model options (any of them: even dropout changes how training continues), with other tensors than
// the declared variables and carries, or of a state that no run can be in; variables and carries
// then keep their values.
RunState from_checkpoint(const io::TensorFile& file, const std::string& where, const Job& job,
                         Variables& variables, Carries* carries = nullptr);

// Loads only parameters and running statistics: evaluation needs no optimizer state, so tensors
// that were not declared are ignored.
void load_variables(const io::TensorFile& file, const std::string& where, Variables& variables);
// The same for weights that are used and not trained further. Throws Error{kBadInput} with the name
// of a tensor that has a value that is not finite.
void load_finite(const io::TensorFile& file, const std::string& where, Variables& variables);
// Throws Error{kBadInput} when a tensor that was declared is missing or of another type.
void expect_fits(const io::TensorFile& file, const std::string& where, const Variables& variables);

// Makes a task by name; throws Error{kUsage} for an unknown one.
using MakeTask = std::function<std::unique_ptr<task::Task>(const std::string& name)>;

// The recipe stored in a checkpoint, and its network. Throws Error{kBadInput} when the file is not
// a checkpoint of keel, and when its network does not fit the checkpoint's tensors.
Job job_of_checkpoint(const io::TensorFile& file, const std::string& where, const MakeTask& make);

}  // namespace keel::train
