// How one of several ranks fails.
#pragma once

#include "src/runtime/communicator.h"

namespace keel::cli {

// Says why this rank fails and ends all of them, for the others would wait for it. Called while an
// exception is handled. It does not return; its result is the exit code.
int end_ranks(Communicator& ranks);

}  // namespace keel::cli
