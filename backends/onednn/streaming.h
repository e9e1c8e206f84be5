// Which results are written past the caches.
#pragma once

#include <cstdint>

#include "src/runtime/backend.h"

namespace keel::onednn {

// A result far larger than the caches is gone from them before anybody reads it: written past them
// it need not be fetched first. Its rows must begin at whole registers, of 16 floats at most.
inline bool is_streamed(const TensorRef& result, std::size_t row) {
  constexpr std::int64_t kBytes = 16 << 20;
  return result.type.bytes() >= kBytes && row % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(result.data) % kAlignment == 0;
}

}  // namespace keel::onednn
