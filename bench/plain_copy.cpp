#include "bench/plain_copy.h"

#include <cstring>

#include "backends/backend_config.h"

#ifdef KEEL_ONEDNN
#include <emmintrin.h>

#include "backends/onednn/streaming.h"
#include "backends/onednn/threads.h"
#endif

namespace keel::bench {
namespace {

#ifdef KEEL_ONEDNN
// Whole cache lines; what is left over is copied plainly.
void stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const std::int64_t lines = bytes / std::int64_t(kAlignment) * std::int64_t(kAlignment);
  for (std::int64_t i = 0; i < lines; i += std::int64_t(sizeof(__m128i))) {
    const __m128i value = _mm_load_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), value);
  }
  _mm_sfence();
  std::memcpy(to + lines, from + lines, std::size_t(bytes - lines));
}

using CopyBlock = void (*)(std::byte* to, const std::byte* from, std::int64_t bytes);

void copy_plainly(std::byte* to, const std::byte* from, std::int64_t bytes) {
  std::memcpy(to, from, std::size_t(bytes));
}

template <CopyBlock kCopy>
Kernel copy_on_threads(std::byte* to, const std::byte* from, std::int64_t bytes) {
  return [=] {
    constexpr std::int64_t kBlock = 64 << 10;
    onednn::parallel_range(bytes, kBlock, [=](std::int64_t begin, std::int64_t end) {
      kCopy(to + begin, from + begin, end - begin);
    });
  };
}
#endif

}  // namespace

Kernel plain_copy(Backend& backend, std::byte* to, std::byte* from, std::int64_t bytes) {
#ifdef KEEL_ONEDNN
  if (backend.name() == "onednn") return copy_on_threads<copy_plainly>(to, from, bytes);
#endif
  const TensorType type{DType::kU8, {bytes}};
  return backend.copy({to, type}, {from, type}, {});
}

bool is_streamed([[maybe_unused]] const Backend& backend, [[maybe_unused]] std::int64_t bytes) {
#ifdef KEEL_ONEDNN
  return backend.name() == "onednn" && bytes >= onednn::kStreamedBytes;
#else
  return false;
#endif
}

Kernel streamed_copy([[maybe_unused]] Backend& backend, [[maybe_unused]] std::byte* to,
                     [[maybe_unused]] std::byte* from, [[maybe_unused]] std::int64_t bytes) {
#ifdef KEEL_ONEDNN
  return copy_on_threads<stream>(to, from, bytes);
#else
  return {};
#endif
}

}  // namespace keel::bench
