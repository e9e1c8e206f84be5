// Runs the trials of a plan as child processes.
#pragma once

#include "program/reproduce_plan.h"

namespace keel::cli {

// Trains every waiting trial, `jobs` of them at once, each by `keel train` in a process of its own,
// whose output goes to train.log in its folder. An interrupted one continues where it stopped.
// Stores the outcome in each trial. SIGINT, SIGTERM and SIGHUP are passed on to the trainings,
// which save themselves. Returns the signal that came, or 0. Throws Error{kIo}, also if another
// process works in the plan's folder.
int run_trials(Plan& plan, int jobs);

}  // namespace keel::cli
