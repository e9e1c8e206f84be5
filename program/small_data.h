// Settings with which a recipe that was made for larger data trains on small ones.
#pragma once

#include "program/common.h"

namespace keel::cli {

// Returns the job of find_job(). If the recipe leaves few updates on the user's data, it has a
// smaller batch and then more epochs, unless the user names a recipe or chooses any of these.
// `args` gets the settings, and a message says what they are.
train::Job job_for_data(RunArgs& args, bool says);

}  // namespace keel::cli
