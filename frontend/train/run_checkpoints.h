// The checkpoints of a run: its first, those that its recipe asks for, and the way back to them.
#pragma once

#include <filesystem>
#include <vector>

#include "frontend/train/checkpoint_store.h"
#include "frontend/train/live_run.h"

namespace keel::train {

// Reads and writes the state of the run. A run without a folder and a rank that does not write
// leave no file.
class RunCheckpoints {
 public:
  RunCheckpoints(LiveRun& run, CheckpointStore::Warn warn);

  // Sets first values. Locks the folder, which must hold no run, and saves the first checkpoint.
  void start();
  // Sets the values and the state of the newest intact checkpoint, and whether the run has
  // finished. Returns the checkpoint's path. Throws Error{kBadInput} when it does not fit the job.
  std::filesystem::path resume();
  // Goes back to the last checkpoint that the recipe asked for, and leaves out all updates since
  // then, up to that of `cause`. Returns how many those are. All ranks call this, and none may have
  // results that were not taken in.
  std::int64_t roll_back(const StepResult& cause);

  // Saves the state; all results must have been taken in. Throws Error{kBadInput} if a rank has
  // drifted away from the others.
  void save();
  // Whether the state is saved as it is.
  bool is_saved() const { return saved_step_ == run_.state.step; }
  // Says that the state has changed since, though not its step.
  void outdate() { saved_step_ = -1; }
  // Throws as save() does.
  void expect_same_ranks();

  // The values and the state of now.
  io::TensorFile content() const;
  // Makes the values of now, with this content, the best ones.
  void save_best(const io::TensorFile& content) { store(content, true); }
  io::TensorFile best() const;
  std::filesystem::path best_path() const { return store_.best_path(); }
  // The files that train.average_last asks to average, the newest first.
  std::vector<std::filesystem::path> to_average() const;

 private:
  void take_scheduled_of_earlier();
  void expect_best() const;
  void expect_same_state(const io::TensorFile& content);
  void store(const io::TensorFile& content, bool is_best);
  std::vector<std::int64_t> kept() const;

  LiveRun& run_;
  CheckpointStore store_;
  std::int64_t saved_step_ = -1, compared_step_ = -1;
};

}  // namespace keel::train
