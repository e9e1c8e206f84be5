// How much of attention's backward is in memory at a time.
#pragma once

#include <cstdint>

namespace keel::cuda {

// The gradients of so many scores (heads, keys, queries) lie in a node's workspace at a time, 256
// MiB of them, or as many as are needed for 32 keys of one head. Only tests change it, on the host
// and before they prepare kernels, to have several parts in tensors that fit a test.
inline std::int64_t most_score_gradients = std::int64_t{64} << 20;

}  // namespace keel::cuda
