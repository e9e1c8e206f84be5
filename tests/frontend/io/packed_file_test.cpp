// Reading files from outside: content, and each way a file can be wrong.
#include "frontend/io/packed_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::gzip;
using test::refuses;

using test::TempDir;
using test::write_bytes;

constexpr std::int64_t kCap = 1 << 20;
const std::string kText = "the quick brown fox jumps over the lazy dog, twice: the quick brown fox";

TEST_CASE("file: plain and gzip give the same content") {
  TempDir folder;
  const std::string packed = gzip(kText);
  write_bytes(folder / "plain", kText);
  write_bytes(folder / "packed", packed);
  write_bytes(folder / "two members", packed + packed);
  CHECK(read_file(folder / "plain", kCap) == kText);
  CHECK(read_file(folder / "packed", kCap) == kText);
  CHECK(read_file(folder / "two members", kCap) == kText + kText);
}

TEST_CASE("file: content larger than the buffers") {
  TempDir folder;
  std::string bytes;
  for (std::uint32_t i = 0; bytes.size() < 400'000; ++i)
    bytes += fmt::format("{} ", i * 2654435761);
  write_bytes(folder / "packed", gzip(bytes));
  write_bytes(folder / "plain", bytes);
  CHECK(read_file(folder / "packed", kCap) == bytes);
  CHECK(read_file(folder / "plain", kCap) == bytes);
}

TEST_CASE("file: what is not a file") {
  TempDir folder;
  const auto read = [&](std::string_view name) {
    return [path = folder / name] { read_file(path, kCap); };
  };
  CHECK(refuses(ErrorKind::kIo, "absent: no such file", read("absent")));
  CHECK(refuses(ErrorKind::kIo, "expected a regular file, got: Is a directory", read(".")));
  CHECK(refuses(ErrorKind::kIo, "expected a regular", [] { read_file("/dev/null", kCap); }));
  // This file opens, and its first page cannot be read.
  CHECK(refuses(ErrorKind::kIo, "readable file", [] { read_file("/proc/self/mem", kCap); }));
  write_bytes(folder / "empty", "");
  write_bytes(folder / "packed empty", gzip(""));
  CHECK(refuses(ErrorKind::kBadInput, "empty: expected content", read("empty")));
  CHECK(refuses(ErrorKind::kBadInput, "empty: expected content", read("packed empty")));
  CHECK(refuses(ErrorKind::kIo, "empty/under", read("empty/under")));
}

TEST_CASE("file: no permission") {
  TempDir folder;
  write_bytes(folder / "secret", kText);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  // Root reads everything, so it steps down for a moment.
  const uid_t user = geteuid();
  const bool lowered = user == 0 && seteuid(65534) == 0;
  const bool refused = refuses(ErrorKind::kIo, "secret: expected a readable file, got: Permission",
                               [&] { read_file(folder / "secret", kCap); });
  if (lowered) REQUIRE(seteuid(user) == 0);
  CHECK(refused);
}

TEST_CASE("file: the cap holds for plain content and for gzip bombs") {
  TempDir folder;
  const std::string zeros(3 << 20, '\0');
  const std::int64_t size = std::ssize(zeros);
  write_bytes(folder / "plain", zeros);
  write_bytes(folder / "bomb", gzip(zeros));
  CHECK(std::filesystem::file_size(folder / "bomb") < 4096);
  for (const char* name : {"plain", "bomb"}) {
    CAPTURE(name);
    CHECK(PackedFile(folder / name, size).size() == size);
    CHECK(refuses(ErrorKind::kBadInput, "expected at most 3145727 bytes",
                  [&] { PackedFile(folder / name, size - 1); }));
    CHECK(refuses(ErrorKind::kBadInput, "expected at most 1 bytes",
                  [&] { PackedFile(folder / name, 1); }));
  }
  std::string damaged = gzip(zeros);
  damaged.back() = '!';
  write_bytes(folder / "bomb", damaged);
  CHECK(refuses(ErrorKind::kBadInput, "damage", [&] { PackedFile(folder / "bomb", size); }));
  // Expansion stops at the cap, so the damage at the end is never met.
  CHECK(refuses(ErrorKind::kBadInput, "expected at most", [&] { PackedFile(folder / "bomb", 1); }));
}

TEST_CASE("file: every truncation of a gzip file is refused") {
  TempDir folder;
  const std::string packed = gzip(kText);
  for (std::size_t length = 2; length < packed.size(); ++length) {
    CAPTURE(length);
    write_bytes(folder / "cut", packed.substr(0, length));
    CHECK(refuses(ErrorKind::kBadInput, fmt::format("its end at byte {}", length),
                  [&] { read_file(folder / "cut", kCap); }));
  }
}

TEST_CASE("file: a changed bit of a gzip file is refused or changes nothing") {
  TempDir folder;
  const std::string packed = gzip(kText);
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    CAPTURE(bit);
    std::string damaged = packed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(folder / "damaged", damaged);
    std::string content;
    if (refuses(ErrorKind::kBadInput, "damaged: expected whole gzip data, got ",
                [&] { content = read_file(folder / "damaged", kCap); })) {
      ++refused;
    } else {
      CHECK(content == (bit < 16 ? damaged : kText));  // no gzip magic, then no gzip file
    }
  }
  CHECK(refused > 8 * std::ssize(kText) / 2);
}

TEST_CASE("file: reading beyond the content names what was missing") {
  TempDir folder;
  write_bytes(folder / "short", "abcdef");
  PackedFile file(folder / "short", kCap);
  std::string bytes(4, ' ');
  file.read(std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == "abcd");
  CHECK(refuses(ErrorKind::kBadInput, "short: expected 4 more bytes, got 2 before its end at 6",
                [&] { file.read(std::as_writable_bytes(std::span(bytes))); }));
}

}  // namespace
}  // namespace keel::io
