// Runs trials as child processes.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "program/trial.h"

namespace keel::cli {

struct QueueOptions {
  std::filesystem::path folder;  // of all trials
  std::string_view command;      // "keel reproduce", for a process that finds the folder locked
  int jobs = 1;                  // trainings at once
  bool quiet = false;
};

// Trains every waiting trial, each by `keel train` in a process of its own, whose output goes to
// train.log in its folder. An interrupted one continues where it stopped. Stores the outcome in
// each trial. SIGINT, SIGTERM and SIGHUP are passed on to the trainings, which save themselves.
// Returns the signal that came, or 0. Throws Error{kIo}, also if another process works in the
// folder.
int run_trials(std::vector<Trial>& trials, const QueueOptions& options);

}  // namespace keel::cli
