// Which results are written past the caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/runtime/backend.h"

namespace keel::onednn {

// A result larger than the caches of the cores is gone from them before anybody reads it. Written
// past them it need not be fetched first, and what it is computed from stays. At this size a norm
// by itself gains a tenth of its time; in a training step, whose next node reads the result,
// neither shows.
inline constexpr std::int64_t kStreamedBytes = 4 << 20;

// Whether the first result of a node is; its rows must begin at whole registers, of 16 floats at
// most. Not in place of an input, as in most of a training step: what has just been read would have
// to leave the caches first, and a norm's backward takes 1.4 to 1.6 times as long.
inline bool is_streamed(const Binding& b, std::size_t row) {
  const TensorRef& result = b.outputs[0];
  const auto is_result = [&](const TensorRef& input) { return input.data == result.data; };
  return row % 16 == 0 && result.type.bytes() >= kStreamedBytes &&
         reinterpret_cast<std::uintptr_t>(result.data) % kAlignment == 0 &&
         std::ranges::none_of(b.inputs, is_result);
}

}  // namespace keel::onednn
