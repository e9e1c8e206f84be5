// Which tensors are small enough for indices of 32 bits.
#pragma once

#include <cstdint>

namespace keel::cuda {

// Tensors of up to so many elements have indices of 32 bits, even one stride of a whole grid beyond
// the last element. Only tests change it, on the host and before they prepare kernels, to run the
// forms with 64 bits on tensors that fit a test.
inline std::int64_t most_short_elements = std::int64_t{1} << 30;

}  // namespace keel::cuda
