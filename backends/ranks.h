// The processes that were started to train together.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/runtime/communicator.h"

namespace keel {

// Takes a line for people, from any thread.
using Say = std::function<void(const std::string& line)>;

// Only this process, or, if it was started by mpirun or srun, one rank of several. Throws
// Error{kBackendMissing} if it is one of several and keel was built without MPI, keel's library for
// MPI cannot be loaded, or a launcher of another MPI has started it. `say` is told which rank has
// stopped answering, before all end.
std::unique_ptr<Communicator> start_ranks(const Say& say);

// The same ranks, whose large values NCCL carries from GPU to GPU. `device` is this rank's GPU, as
// CUDA counts. NCCL is libnccl.so.2, or the file that the variable KEEL_NCCL names. All of `ranks`
// call this, and it must outlive the result. Throws Error{kBackendMissing} if NCCL or CUDA is not
// there.
std::unique_ptr<Communicator> carried_by_nccl(Communicator& ranks, int device);

// The number of this process among those of this machine that were started together, as its
// launcher tells it; 0 if it does not, or has started only this one.
int local_rank();

// Whether this keel was built with MPI.
bool has_mpi();

}  // namespace keel
