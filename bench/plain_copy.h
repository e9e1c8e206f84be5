// The copies that norms are measured against, on a backend's own threads.
#pragma once

#include "src/runtime/backend.h"

namespace keel::bench {

// A kernel, to be run by `backend`, that copies `bytes` from one address to another, both aligned
// to kAlignment. On onednn: blocks of 64 KiB, cut among the backend's threads as its kernels cut
// their work, each copied by memcpy. On the others: the backend's own copy.
Kernel plain_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes);

// Whether the backend stores results of that size past the caches: onednn does so from a size on
// (see backends/onednn/streaming.h).
bool is_streamed(const Backend& backend, std::int64_t bytes);
// For such sizes: the same copy with stores past the caches.
Kernel streamed_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes);

}  // namespace keel::bench
