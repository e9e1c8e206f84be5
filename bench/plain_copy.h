// The yardsticks of the norms: copies on a backend's own threads.
#pragma once

#include "src/runtime/backend.h"

namespace keel::bench {

// A kernel, to be run by `backend`, that copies `bytes` from one address to another, both aligned
// to kAlignment. On onednn: blocks of 64 KiB, cut among the backend's threads as its kernels cut
// their work, each copied by memcpy. On the others: the backend's own copy.
Kernel plain_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes);

// On onednn the same by stores that bypass the caches, where its kernels store results of that size
// so (see backends/onednn/streaming.h); else none.
Kernel streamed_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes);

}  // namespace keel::bench
