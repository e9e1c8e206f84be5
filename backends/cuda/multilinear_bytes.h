// How much of a batch multi-linear attention takes at a time.
#pragma once

#include <cstdint>

namespace keel::cuda {

// H and T of a chunk of sequences take no more bytes than this, unless those of a single sequence
// do: as much as stays in an H100's L2 between the products, which have too few tiles for a GPU
// where chunks are smaller. Only tests change it, before they prepare kernels.
inline std::int64_t most_multilinear_bytes = 64 << 20;

}  // namespace keel::cuda
