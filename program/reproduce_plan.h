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

// One training of one seed.
struct Trial {
  std::string name;  // "adanorm on mnist, seed 1"
  std::int64_t seed = 0;
  std::string run;                         // of its column; it takes as long as others of this run
  std::filesystem::path folder;            // where it is trained
  std::vector<std::string> start, resume;  // what keel is told
  report::Settings settings;               // the recipe in full, and the backend
  report::Length length;
  TrialState state = TrialState::kWaiting;
  std::string mark, reason;  // of one that failed: "diverged", and what was said
};

// A cell either has trials, one a seed, or says why there are none.
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

// Looks up names, reads the data of every task once to see whether it is there, and looks into the
// folders for what is done already. Throws Error{kUsage} for an unknown table, task, norm or
// setting, and where a folder holds a run of other settings; Error{kBadInput} where no cell can be
// trained.
Plan make_plan(const ReproduceArgs& args);

// What the trial's folder says of it: finished, failed before, or waiting to start or go on. Throws
// what report::read_run does, and Error{kUsage} naming the first setting that differs.
void look_into_folder(Trial& trial);

// The command for a shell.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace keel::cli
