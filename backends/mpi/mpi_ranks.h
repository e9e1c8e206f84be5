// Ranks by MPI: the processes that mpirun, or srun with its support for MPI, has started.
//
// They are a library of its own, libkeel_mpi.so, which is loaded only where a launcher has started
// the process. A keel that trains alone needs no MPI, and neither does a package of it.
#pragma once

#include <functional>
#include <string>

#include "src/runtime/communicator.h"

// Joins the other processes; call it once, before any thread exists. While the result lives, a
// thread watches the next lower rank: `say` is told of one that does not answer for kStallSeconds,
// and all ranks end. It waits for all ranks before it ends. The caller owns it.
extern "C" __attribute__((visibility("default"))) keel::Communicator* keel_mpi_join_ranks(
    const std::function<void(const std::string&)>& say);

namespace keel::mpi {

inline constexpr int kStallSeconds = 8;

}  // namespace keel::mpi
