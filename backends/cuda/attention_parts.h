// How much of attention's backward is in memory at a time. Only tests change these numbers, on the
// host and before they prepare kernels, to have several parts in tensors that fit a test.
#pragma once

#include <cstdint>

namespace keel::cuda {

// The gradients of so many scores (heads, keys, queries) lie in a node's workspace at a time, 256
// MiB of them, or as many as are needed for 32 keys of one head (of all heads of a row where scores
// depend on distances).
inline std::int64_t most_score_gradients = std::int64_t{64} << 20;

// So many floats may the gradients of distances have, keys x features for each group of rows, or as
// many as one group needs. Groups are computed at the same time and then added up.
inline std::int64_t most_distance_gradients = std::int64_t{4} << 20;

}  // namespace keel::cuda
