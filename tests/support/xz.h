// Packs bytes for tests as the xz tool does.
#pragma once

#include <lzma.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "src/core/error.h"

namespace keel::test {

inline std::string xz(std::string_view bytes, lzma_check check = LZMA_CHECK_CRC64,
                      std::uint32_t preset = 6) {
  std::string packed(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  const lzma_ret code = lzma_easy_buffer_encode(
      preset, check, nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
      reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size());
  keel::check(code == LZMA_OK, ErrorKind::kMemory, "liblzma: expected to pack, got code {}",
              static_cast<int>(code));
  packed.resize(size);
  return packed;
}

}  // namespace keel::test
