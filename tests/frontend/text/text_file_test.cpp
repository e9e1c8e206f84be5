// Text files: encodings, byte-order marks, and where the wrong byte stands.
#include "frontend/text/text_file.h"

#include "frontend/text/line_reader.h"
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

TEST_CASE("text file: a byte-order mark within or at the end is named, in a file and by lines") {
  TempDir folder;
  for (const auto& [name, content, line] : {std::tuple("within", "one\n\uFEFFtwo\nthree\n", 2),
                                            {"end", "one\ntwo\n\uFEFF", 3},
                                            {"twice", "\uFEFF\uFEFFone\n", 1},
                                            {"mixed", "\uFEFFone\r\n\uFEFFtwo\n", 2}}) {
    write_bytes(folder / name, content);
    const std::string expected =
        fmt::format("{}: line {}: expected text, got a byte-order mark (ef bb bf)", name, line);
    CHECK(refuses(ErrorKind::kBadInput, expected, [&] { read_text(folder / name, kCap); }));
    CHECK(refuses(ErrorKind::kBadInput, expected, [&] { read_western_text(folder / name, kCap); }));
    CHECK(refuses(ErrorKind::kBadInput, expected, [&] {
      LineReader reader(folder / name);
      while (reader.next()) continue;
    }));
  }
}

// "a\n" in the encodings of two and four bytes, with a mark and without.
TEST_CASE("text file: UTF-16 and UTF-32 are named, with what converts them") {
  using namespace std::string_view_literals;
  TempDir folder;
  for (const auto& [content, encoding] : {std::pair("\xFF\xFE"
                                                    "a\0\n\0"sv,
                                                    "UTF-16"),
                                          {"\xFE\xFF\0a\0\n"sv, "UTF-16"},
                                          {"a\0\n\0"sv, "UTF-16LE"},
                                          {"\0a\0\n"sv, "UTF-16BE"},
                                          {"\xFF\xFE\xAC\x20"sv, "UTF-16"},
                                          {"\xFF\xFE\0\0a\0\0\0"sv, "UTF-32"},
                                          {"\0\0\xFE\xFF\0\0\0a"sv, "UTF-32"}}) {
    write_bytes(folder / "wide", std::string(content));
    const std::string expected = fmt::format(
        "wide: expected UTF-8, got {}; iconv -f {} -t UTF-8 converts it", encoding, encoding);
    CHECK(refuses(ErrorKind::kBadInput, expected, [&] { read_text(folder / "wide", kCap); }));
    CHECK(
        refuses(ErrorKind::kBadInput, expected, [&] { read_western_text(folder / "wide", kCap); }));
    CHECK(refuses(ErrorKind::kBadInput, expected, [&] { LineReader(folder / "wide").next(); }));
  }
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
