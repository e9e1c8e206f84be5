// A command that several ranks run, and how one of them fails.
#pragma once

#include <functional>

#include "src/runtime/communicator.h"

namespace keel::cli {

// Says why this rank fails and ends all of them, for the others would wait for it. Called while an
// exception is handled. It does not return; its result is the exit code.
int end_ranks(Communicator& ranks);

// Runs a command as one of the ranks that this process was started with, or alone. Returns its exit
// code, with which all ranks end if one throws.
int with_ranks(const std::function<int(Communicator&)>& command);

}  // namespace keel::cli
