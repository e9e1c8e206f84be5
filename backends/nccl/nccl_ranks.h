// Ranks with GPUs, whose large values NCCL carries from GPU to GPU.
//
// It takes another communicator, of MPI say, for what NCCL does not do: to find the other ranks, to
// wait for them, to see that one has died, and for values so small that a copy to the GPU and back
// takes longer than they do.
//
// NCCL adds nothing up but in add_up(), which `--reduce fast` uses: its order of additions depends
// on the number of ranks and on what NCCL knows of the machine. exchange() and gather() only carry
// bytes, in the order of ranks, so that RankSum (src/runtime/rank_sum.h) adds up the fixed tree as
// it does with any other library.
#pragma once

#include <memory>

#include "backends/nccl/nccl_library.h"
#include "src/runtime/communicator.h"

namespace keel::nccl {

struct NcclOptions {
  std::string library = "libnccl.so.2";
  std::size_t least_bytes = std::size_t{256} << 10;  // that a message has for NCCL to carry it
  int device = 0;                                    // the GPU of this rank, as CUDA counts
};

// All ranks of `host`, which must outlive the result, call this. Throws Error{kBackendMissing} if
// NCCL or CUDA is not there, Error{kIo} if a GPU or another rank cannot be reached.
std::unique_ptr<Communicator> join_by_nccl(Communicator& host, const NcclOptions& options = {});

}  // namespace keel::nccl
