// PNG files, taken apart again.
#include "frontend/io/png.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <vector>

#include "tests/support/checks.h"

namespace keel::io {
namespace {

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (const char c : bytes.substr(0, 4)) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

struct Chunk {
  std::string type, data;
};

// The chunks after the signature, their checksums looked at.
std::vector<Chunk> chunks_of(std::string_view png) {
  std::vector<Chunk> chunks;
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  png.remove_prefix(8);
  while (!png.empty()) {
    REQUIRE(png.size() >= 12);
    const std::size_t size = big_endian(png);
    REQUIRE(png.size() >= 12 + size);
    const std::string_view body = png.substr(4, 4 + size);
    CHECK(big_endian(png.substr(8 + size)) ==
          crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
    chunks.push_back({std::string(body.substr(0, 4)), std::string(body.substr(4))});
    png.remove_prefix(12 + size);
  }
  return chunks;
}

TEST_CASE("png: header, packed rows and end, each with its checksum") {
  const std::vector<std::uint8_t> pixels{0, 50, 100, 150, 200, 255};
  const std::vector<Chunk> chunks = chunks_of(png_of(pixels, 3, 2));
  REQUIRE(chunks.size() == 3);
  CHECK(chunks[0].type == "IHDR");
  CHECK(big_endian(chunks[0].data) == 3);
  CHECK(big_endian(chunks[0].data.substr(4)) == 2);
  CHECK(chunks[0].data.substr(8) == std::string({8, 0, 0, 0, 0}));
  CHECK(chunks[1].type == "IDAT");
  std::vector<Bytef> rows(8);
  uLongf size = 8;
  REQUIRE(uncompress(rows.data(), &size, reinterpret_cast<const Bytef*>(chunks[1].data.data()),
                     uLong(chunks[1].data.size())) == Z_OK);
  CHECK(rows == std::vector<Bytef>{0, 0, 50, 100, 0, 150, 200, 255});
  CHECK(chunks[2].type == "IEND");
  CHECK(chunks[2].data.empty());
}

TEST_CASE("png: sizes that do not fit are refused") {
  const std::vector<std::uint8_t> pixels(6);
  for (const auto& [width, height] : {std::pair{2, 2}, {0, 6}, {6, 0}, {-2, -3}, {4, 1}}) {
    test::check_refused([&] { png_of(pixels, width, height); },
                        fmt::format("[png] pixels: expected {} x {}", width, height));
  }
}

}  // namespace
}  // namespace keel::io
