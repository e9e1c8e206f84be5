// Ranks that are threads of one process, so that tests need no library and no launcher.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <vector>

#include "src/core/error.h"
#include "src/runtime/communicator.h"

namespace keel::test {

// Calls `body` in a thread for each rank, with the rank's communicator, and waits for all. Throws
// what the lowest rank threw; the others must throw too, or end, without waiting for it.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace keel::test
