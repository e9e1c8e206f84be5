// Decides which results are stored past the caches (non-temporal stores).
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/runtime/backend.h"

namespace keel::onednn {

// A result stored past the caches need not be fetched first, and the inputs that it is computed
// from stay cached. But the next reader no longer finds it there, and cached parts of it must be
// evicted. In a training step, a norm and the node after it then take 1.5 times as long at 4 MiB
// and 1.3 times at 8; from 16 MiB on they take less.
inline constexpr std::int64_t kStreamedBytes = 16 << 20;

// Whether a node streams its first result. Its rows must begin at whole lines of 64 bytes. A result
// in place of an input, the usual case in a training step, is not streamed: what was just read
// would be evicted first, and a norm's backward takes 1.4 to 1.6 times as long.
inline bool is_streamed(const Binding& b, std::size_t row) {
  if (b.is_read_next) return false;
  const TensorRef& result = b.outputs.front();
  const auto is_result = [&](const TensorRef& input) { return input.data == result.data; };
  constexpr std::int64_t kLine = 64;
  return std::int64_t(row) * size_of(result.type.dtype) % kLine == 0 &&
         result.type.bytes() >= kStreamedBytes &&
         reinterpret_cast<std::uintptr_t>(result.data) % kAlignment == 0 &&
         std::ranges::none_of(b.inputs, is_result);
}

}  // namespace keel::onednn
