// Which results are written past the caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/runtime/backend.h"

namespace keel::onednn {

// Written past the caches a result need not be fetched first, and what it is computed from stays.
// What reads it next finds it there no more, though, and what of it is in the caches already has to
// leave them: in a training step a norm and the node after it take 1.5 times as long for it at 4
// MiB and 1.3 times at 8; from 16 MiB on they take less.
inline constexpr std::int64_t kStreamedBytes = 16 << 20;

// Whether the first result of a node is; its rows must begin at whole registers, of 16 floats at
// most. Not in place of an input, as in most of a training step: what has just been read would have
// to leave the caches first, and a norm's backward takes 1.4 to 1.6 times as long.
inline bool is_streamed(const Binding& b, std::size_t row) {
  const TensorRef& result = b.outputs.front();
  const auto is_result = [&](const TensorRef& input) { return input.data == result.data; };
  return row % 16 == 0 && result.type.bytes() >= kStreamedBytes &&
         reinterpret_cast<std::uintptr_t>(result.data) % kAlignment == 0 &&
         std::ranges::none_of(b.inputs, is_result);
}

}  // namespace keel::onednn
