// Ranks by MPI: the processes that mpirun, or srun with its support for MPI, has started.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/runtime/communicator.h"

namespace keel::mpi {

// Joins the other processes; call it once, before any thread exists. While it lives, a thread
// watches the next lower rank: `say` is told of one that does not answer for kStallSeconds, and all
// ranks end. It waits for all ranks before it ends.
std::unique_ptr<Communicator> join_ranks(const std::function<void(const std::string&)>& say);

inline constexpr int kStallSeconds = 8;

}  // namespace keel::mpi
