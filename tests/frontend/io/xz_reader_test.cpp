// Files packed by xz, through the class that reads every file from outside.
#include "frontend/io/xz_reader.h"

#include <algorithm>

#include "frontend/io/packed_file.h"
#include "tests/support/input_checks.h"
#include "tests/support/xz.h"

namespace keel::io {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;
using test::xz;

constexpr std::int64_t kXzCap = 1 << 20;
const std::string kXzText =
    "the quick brown fox jumps over the lazy dog, twice: the quick brown fox";

std::string long_text() {
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < 400'000; ++i)
    bytes += fmt::format("{} ", i * 2654435761);
  return bytes;
}

TEST_CASE("xz: content, whatever the checksum and the level") {
  TempDir folder;
  for (lzma_check check : {LZMA_CHECK_CRC32, LZMA_CHECK_CRC64, LZMA_CHECK_SHA256}) {
    for (std::uint32_t preset : {0u, 6u, 9u | LZMA_PRESET_EXTREME}) {
      write_bytes(folder / "packed", xz(kXzText, check, preset));
      CHECK(read_file(folder / "packed", kXzCap) == kXzText);
    }
  }
  write_bytes(folder / "large", xz(long_text()));
  CHECK(PackedFile(folder / "large", kXzCap).size() == std::ssize(long_text()));
  CHECK(read_file(folder / "large", kXzCap) == long_text());
}

TEST_CASE("xz: content in pieces, and to the front again") {
  TempDir folder;
  const std::string whole = long_text();
  write_bytes(folder / "packed", xz(whole));
  XzReader reader(folder / "packed");
  for (int time = 0; time < 2; ++time) {
    std::string joined, piece(7919, ' ');
    for (std::size_t got = 1; got > 0;) {
      got = reader.read(std::as_writable_bytes(std::span(piece)));
      joined.append(piece, 0, got);
    }
    CHECK((joined == whole));
    CHECK(reader.read(std::as_writable_bytes(std::span(piece))) == 0);
    reader.rewind();
  }
}

TEST_CASE("xz: several streams, with padding between and after them") {
  TempDir folder;
  const std::string packed = xz(kXzText), padding(8, '\0');
  const auto content = [&](const std::string& bytes) {
    write_bytes(folder / "packed", bytes);
    return read_file(folder / "packed", kXzCap);
  };
  CHECK(content(packed + packed) == kXzText + kXzText);
  CHECK(content(packed + padding + packed + padding) == kXzText + kXzText);
  CHECK(content(packed + xz("") + packed) == kXzText + kXzText);
  // Padding comes in fours, and nothing else may follow.
  for (const std::string& behind : {std::string(3, '\0'), std::string("x"), std::string("junk"),
                                    test::gzip(kXzText), packed.substr(0, 5)}) {
    CHECK(refuses(ErrorKind::kBadInput, "packed: expected whole xz data",
                  [&] { content(packed + behind); }));
  }
}

TEST_CASE("xz: the cap holds, for bombs too") {
  TempDir folder;
  const std::string zeros(3 << 20, '\0');
  const std::int64_t size = std::ssize(zeros);
  std::string bomb = xz(zeros);
  write_bytes(folder / "bomb", bomb);
  CHECK(bomb.size() < 4096);
  CHECK(PackedFile(folder / "bomb", size).size() == size);
  CHECK(refuses(ErrorKind::kBadInput,
                "bomb: expected at most 3145727 bytes, got more after expansion",
                [&] { PackedFile(folder / "bomb", size - 1); }));
  bomb[bomb.size() - 30] ^= 1;  // within the index at the end
  write_bytes(folder / "bomb", bomb);
  CHECK(refuses(ErrorKind::kBadInput, "damage", [&] { PackedFile(folder / "bomb", size); }));
  // Expansion stops at the cap, so the damage at the end is never met.
  CHECK(refuses(ErrorKind::kBadInput, "at most 1 bytes", [&] { PackedFile(folder / "bomb", 1); }));
}

TEST_CASE("xz: no content is refused") {
  TempDir folder;
  write_bytes(folder / "packed", xz(""));
  CHECK(refuses(ErrorKind::kBadInput, "packed: expected content, got an empty file",
                [&] { PackedFile(folder / "packed", kXzCap); }));
}

TEST_CASE("xz: every truncation is refused") {
  TempDir folder;
  const std::string packed = xz(kXzText);
  for (std::size_t length = 6; length < packed.size(); ++length) {
    CAPTURE(length);
    write_bytes(folder / "cut", packed.substr(0, length));
    CHECK(refuses(ErrorKind::kBadInput,
                  fmt::format("cut: expected whole xz data, got its end at byte {}", length),
                  [&] { read_file(folder / "cut", kXzCap); }));
  }
}

TEST_CASE("xz: every changed bit is refused") {
  TempDir folder;
  const std::string packed = xz(kXzText);
  for (std::size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    CAPTURE(bit);
    std::string damaged = packed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(folder / "damaged", damaged);
    std::string content;
    if (!refuses(ErrorKind::kBadInput, "damaged: expected ",
                 [&] { content = read_file(folder / "damaged", kXzCap); })) {
      CHECK(bit < 48);  // no xz magic, then no xz file
      CHECK(content == damaged);
    }
  }
}

TEST_CASE("xz: streams that could be damaged without anybody finding out") {
  TempDir folder;
  write_bytes(folder / "unchecked", xz(kXzText, LZMA_CHECK_NONE));
  CHECK(refuses(ErrorKind::kBadInput, "unchecked: expected xz data with a known checksum",
                [&] { read_file(folder / "unchecked", kXzCap); }));
}

TEST_CASE("xz: a dictionary beyond all reason") {
  TempDir folder;
  lzma_options_lzma options;
  REQUIRE(!lzma_lzma_preset(&options, 0));
  options.dict_size = 1u << 30;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string packed(4096, '\0');
  std::size_t size = 0;
  REQUIRE(lzma_stream_buffer_encode(const_cast<lzma_filter*>(filters), LZMA_CHECK_CRC32, nullptr,
                                    reinterpret_cast<const std::uint8_t*>(kXzText.data()),
                                    kXzText.size(), reinterpret_cast<std::uint8_t*>(packed.data()),
                                    &size, packed.size()) == LZMA_OK);
  write_bytes(folder / "huge", packed.substr(0, size));
  CHECK(refuses(ErrorKind::kMemory, "huge: expected xz data that need at most 268435456 bytes",
                [&] { read_file(folder / "huge", kXzCap); }));
}

TEST_CASE("xz: telling the format") {
  TempDir folder;
  write_bytes(folder / "packed", xz(kXzText));
  write_bytes(folder / "plain", kXzText);
  write_bytes(folder / "short",
              "\xFD"
              "7z");
  CHECK(is_xz(folder / "packed"));
  for (const char* name : {"plain", "short", "absent", "."}) CHECK(!is_xz(folder / name));
  CHECK(!is_xz("/dev/zero"));
  CHECK(read_file(folder / "short", kXzCap) ==
        "\xFD"
        "7z");
  CHECK(refuses(ErrorKind::kIo, "absent: expected a readable file",
                [&] { XzReader(folder / "absent"); }));
}

TEST_CASE("xz: a file is found plain or packed, plain first") {
  TempDir folder;
  CHECK(!find_packed(folder / "name"));
  for (const char* name : {"name.xz", "name.gz", "name"}) {
    write_bytes(folder / name, "x");
    CHECK(find_packed(folder / "name") == folder / name);
  }
}

}  // namespace
}  // namespace keel::io
