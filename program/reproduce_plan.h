// The cells of a paper's table as trainings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program/trial.h"
#include "studies/paper_table.h"

namespace keel::cli {

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

}  // namespace keel::cli
