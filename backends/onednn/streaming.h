// Which results are written past the caches.
#pragma once

#include <cstdint>

#include "src/runtime/backend.h"

namespace keel::onednn {

// A result larger than the caches of the cores is gone from them before anybody reads it. Written
// past them it need not be fetched first, and what it is computed from stays. At this size a norm
// by itself gains a tenth of its time; in a training step, whose next node reads the result,
// neither shows.
inline constexpr std::int64_t kStreamedBytes = 4 << 20;

// The result's rows must begin at whole registers, of 16 floats at most.
inline bool is_streamed(const TensorRef& result, std::size_t row) {
  return row % 16 == 0 && result.type.bytes() >= kStreamedBytes &&
         reinterpret_cast<std::uintptr_t>(result.data) % kAlignment == 0;
}

}  // namespace keel::onednn
