// The yardstick of the norms: a plain copy on a backend's own threads.
#pragma once

#include "src/runtime/backend.h"

namespace keel::bench {

// A kernel, to be run by `backend`, that copies `bytes` from one address to another, both aligned
// to kAlignment. On onednn: blocks of 64 KiB, cut among the backend's threads as its kernels cut
// their work, each copied by memcpy, or from 16 MiB on by stores that bypass the caches, as the
// kernels' results are stored. On the others: the backend's own copy.
Kernel plain_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes);

}  // namespace keel::bench
