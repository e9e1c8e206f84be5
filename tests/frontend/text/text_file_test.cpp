// Text files: encodings, byte-order marks, and where the wrong byte stands.
#include "frontend/text/text_file.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;

constexpr std::int64_t kCap = 1 << 20;

TEST_CASE("text file: plain or packed, with or without a byte-order mark") {
  TempDir folder;
  write_bytes(folder / "plain", "na\u00EFve\n");
  write_bytes(folder / "packed", test::gzip("na\u00EFve\n"));
  write_bytes(folder / "marked", "\uFEFFna\u00EFve\n");
  for (const char* name : {"plain", "packed", "marked"}) {
    CHECK(read_text(folder / name, kCap) == "na\u00EFve\n");
    CHECK(read_western_text(folder / name, kCap).utf8 == "na\u00EFve\n");
    CHECK(!read_western_text(folder / name, kCap).was_windows_1252);
  }
  write_bytes(folder / "inside", "a\uFEFFb");
  CHECK(read_text(folder / "inside", kCap) == "a\uFEFFb");
}

TEST_CASE("text file: a wrong byte is named by line and place") {
  TempDir folder;
  write_bytes(folder / "first", "ab\xE9");
  write_bytes(folder / "third", "one\ntwo \u20AC\r\nthr\xE9\x65\nfour\n");
  const auto read = [&](const char* name) {
    return [path = folder / name] { read_text(path, kCap); };
  };
  CHECK(refuses(ErrorKind::kBadInput, "first: line 1: expected UTF-8, got e9 at byte 3",
                read("first")));
  CHECK(refuses(ErrorKind::kBadInput, "third: line 3: expected UTF-8, got e9 at byte 4",
                read("third")));
}

TEST_CASE("text file: what cannot be UTF-8 is Windows-1252") {
  TempDir folder;
  write_bytes(folder / "western", "caf\xE9 \x96 na\xEFve\n");
  const WesternText text = read_western_text(folder / "western", kCap);
  CHECK(text.utf8 == "caf\u00E9 \u2013 na\u00EFve\n");
  CHECK(text.was_windows_1252);
  write_bytes(folder / "neither", "fine\ncaf\xE9 \x81\n");
  CHECK(refuses(ErrorKind::kBadInput,
                "neither: line 2: expected UTF-8 or Windows-1252, got 81 at byte 6",
                [&] { read_western_text(folder / "neither", kCap); }));
}

TEST_CASE("text file: files that cannot be read at all") {
  TempDir folder;
  write_bytes(folder / "empty", "");
  write_bytes(folder / "large", std::string(11, 'a'));
  CHECK(refuses(ErrorKind::kIo, "absent", [&] { read_text(folder / "absent", kCap); }));
  CHECK(refuses(ErrorKind::kBadInput, "expected content",
                [&] { read_text(folder / "empty", kCap); }));
  CHECK(refuses(ErrorKind::kBadInput, "at most 10 bytes",
                [&] { read_western_text(folder / "large", 10); }));
}

}  // namespace
}  // namespace keel::text
