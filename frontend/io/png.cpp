#include "frontend/io/png.h"

#include <zlib.h>

#include <limits>
#include <string_view>
#include <vector>

#include "src/core/error.h"

namespace keel::io {
namespace {

void append_big_endian(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(number >> shift & 0xff);
}

// Length, type, data, and the checksum of both.
void append_chunk(std::string& png, std::string_view type, std::string_view data) {
  append_big_endian(png, std::uint32_t(data.size()));
  const std::size_t first = png.size();
  png += type;
  png += data;
  const auto* const begin = reinterpret_cast<const Bytef*>(png.data() + first);
  append_big_endian(png, std::uint32_t(crc32_z(0, begin, png.size() - first)));
}

// Rows, each after the number of its filter, which is none, packed.
std::string packed_rows(std::span<const std::uint8_t> pixels, std::size_t width) {
  std::vector<Bytef> rows;
  for (std::size_t first = 0; first < pixels.size(); first += width) {
    rows.push_back(0);
    const auto row = pixels.subspan(first, width);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  uLongf size = compressBound(uLong(rows.size()));
  std::string packed(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(),
                               uLong(rows.size()), Z_BEST_COMPRESSION);
  check(result == Z_OK, ErrorKind::kMemory, "[png] packing: expected room, got zlib's error {}",
        result);
  packed.resize(size);
  return packed;
}

}  // namespace

std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const bool is_fine = width >= 1 && height >= 1 && width <= kMost && height <= kMost &&
                       std::ssize(pixels) % width == 0 && std::ssize(pixels) / width == height;
  check(is_fine, ErrorKind::kUsage, "[png] pixels: expected {} x {}, 1 or more each way, got {}",
        width, height, pixels.size());
  std::string header;
  append_big_endian(header, std::uint32_t(width));
  append_big_endian(header, std::uint32_t(height));
  // 8 bits a pixel, grey, and the only ways to pack, filter and not to interlace.
  header += {8, 0, 0, 0, 0};
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", packed_rows(pixels, std::size_t(width)));
  append_chunk(png, "IEND", "");
  return png;
}

}  // namespace keel::io
