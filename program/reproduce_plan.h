// The cells of a paper's table as trainings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/report/remaining.h"
#include "frontend/report/run.h"
#include "program/commands.h"
#include "studies/paper_table.h"

namespace keel::cli {

enum class TrialState { kWaiting, kRunning, kFinished, kFailed, kInterrupted };

// One training with one seed.
struct Trial {
  std::string name;  // "adanorm on mnist, seed 1"
  std::int64_t seed = 0;
  std::string run;                         // of its column; trainings of one run take equally long
  std::string data;                        // the folder or file that it reads; "": built-in data
  std::filesystem::path folder;            // where it is trained
  std::vector<std::string> start, resume;  // arguments for keel
  report::Settings settings;               // the recipe in full, and the backend
  report::Settings defaults;               // what a run that lacks a setting had
  report::Length length;
  TrialState state = TrialState::kWaiting;
  std::string mark, reason;  // of a failed one: "diverged", and its message
};

// A cell either has trials, one for each seed, or the reason why there are none.
struct PlannedCell {
  std::string mark, note;           // "no data", "[mnist] DIR: expected ..."
  std::vector<std::size_t> trials;  // places in Plan::trials, which other cells may share
};

struct Plan {
  study::PaperTable table;  // the chosen rows and columns
  std::vector<std::int64_t> seeds;
  std::filesystem::path folder;
  std::vector<Trial> trials;
  std::vector<std::vector<PlannedCell>> cells;  // by row and column
};

// Looks up names, reads the data of every task once to see whether they exist, and looks into
// the folders for finished work. With args.as_is it reads no data, and a run that is there keeps
// those that it had. Throws Error{kUsage} for an unknown table, task, norm or setting, and if a
// folder holds a run of other settings; Error{kBadInput} if no cell can be trained.
Plan make_plan(const ReproduceArgs& args);

// Reads the state of a trial from its folder: finished, failed before, or waiting to start or to go
// on. Throws as report::read_run, and Error{kUsage} naming the first setting that differs.
void look_into_folder(Trial& trial);

// The command for a shell.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace keel::cli
