// How much of a batch multi-linear attention takes at a time.
#pragma once

#include <cstdint>

namespace keel::cuda {

// H and T of a chunk of sequences take no more bytes than this, unless those of a single sequence
// do. By an estimate for an H100, which was not measured, products of smaller chunks have too few
// tiles to keep it busy. Only tests change it, before they prepare kernels.
inline std::int64_t most_multilinear_bytes = 64 << 20;

}  // namespace keel::cuda
