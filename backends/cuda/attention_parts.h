// How much of attention's backward is in memory at a time. Only tests change these numbers, on the
// host and before they prepare kernels, to have several parts in tensors that fit a test.
#pragma once

#include <cstdint>

namespace keel::cuda {

// The gradients of so many scores (heads, keys, queries) lie in a node's workspace at a time, 256
// MiB of them, or as many as are needed for 32 keys of one head (of all heads of a row where scores
// depend on distances).
inline std::int64_t most_score_gradients = std::int64_t{64} << 20;

// The gradients of distances take keys x features floats for each group of rows. Groups are
// computed at the same time and added up afterwards. There are as many groups as fit this many
// floats, and at least one.
inline std::int64_t most_distance_gradients = std::int64_t{4} << 20;

}  // namespace keel::cuda
