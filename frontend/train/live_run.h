// A run as it stands in memory: what its loop, its checkpoints and its report have in common.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "frontend/io/folder_lock.h"
#include "frontend/train/job.h"
#include "frontend/train/observer.h"
#include "frontend/train/run_folder.h"
#include "frontend/train/run_state.h"
#include "frontend/train/shard_runner.h"

namespace keel::train {

struct RunOptions {
  // Where config, metrics, checkpoints and plots go. Empty: the run is only in memory, and nothing
  // is measured at its end; its job has train.on_nonfinite = stop.
  std::filesystem::path folder = {};
  bool resume = false;
  bool quiet = false;
  task::OptionValues facts = {};  // for the table [run] of config.toml: versions, hardware
  Communicator* ranks = nullptr;  // the processes that train together; null: only this one
  Reduction reduction = Reduction::kFixed;
  std::int64_t at_once = 0;               // see Ranks
  std::vector<Observer*> observers = {};  // of rank 0; they outlive the trainer
  std::string backend = {};  // for checkpoints: what computes, and what its bits depend on
};

struct LiveRun {
  // Loads the data of training and validation, compiles the step and, to resume, locks the folder.
  LiveRun(Backend& backend, const Job& job, const RunOptions& options);

  bool has_folder() const { return !folder.path.empty(); }
  // Whether this is the rank that writes the run's files and shows its progress.
  bool writes() const { return has_folder() && ranks.rank() == 0 && !has_finished; }
  std::unique_ptr<task::Stream> test_rows() const;
  // The update that starts there, as observers see it.
  ObservedUpdate observed(const StepPlace& place);
  // Whether the epoch of the state has had all of its batches.
  bool is_epoch_over() const;
  bool is_stale() const;  // no better evaluation for `patience` evaluations
  bool is_slow() const;   // the learning rate has fallen to stop_min_lr
  bool is_done() const;

  Backend& backend;
  const Job& job;
  OneRank one;
  Communicator& ranks;
  bool has_finished = false;  // before the members that ask writes()
  const RunFolder folder;
  std::unique_ptr<io::FolderLock> lock;
  const std::unique_ptr<task::Stream> train_rows, valid_rows;
  Variables variables;
  const std::unique_ptr<Steps> steps;
  RunState state;  // after all steps that were started; epoch_loss: of the results taken in
};

}  // namespace keel::train
