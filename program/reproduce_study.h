// Tables and figures of the papers that are not of trainings to the end: a study computes them.
#pragma once

#include <string>

#include "frontend/report/comparison.h"
#include "program/commands.h"
#include "studies/paper_table.h"

namespace keel::cli {

// Nothing for a name that is none of them.
const study::StudiedFigure* find_studied_figure(const std::string& name);

struct StudiedOutcome {
  report::Comparison comparison;  // claims as remarks, and charts; no cells
  bool complete = false;
};
// Runs the study, or with args.as_is takes only what an earlier call has left in
// OUT/study.json, where OUT is args.out. A study that has been run with the same command is not run
// again. One that cannot be run with the available data says why. args.seeds must follow each
// other.
StudiedOutcome studied_outcome(const study::StudiedFigure& figure, const ReproduceArgs& args);

// `keel reproduce NAME`: writes OUT/NAME.md, OUT/NAME.html and the charts. Returns the exit code.
// Throws Error{kUsage} with --tasks, --norms or --plan, for there are no cells, and for seeds that
// do not follow each other, unless the study is exact and takes none.
int run_reproduce_study(const study::StudiedFigure& figure, ReproduceArgs args);

}  // namespace keel::cli
