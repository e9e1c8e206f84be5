// Lines of files of any size: ends, encodings, and lines that cross the reader's chunks.
#include "frontend/text/line_reader.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  while (const std::optional<Line> line = reader.next()) {
    lines.emplace_back(line->text);
    CHECK(line->number == std::ssize(lines));
  }
  CHECK(!reader.next());
  return lines;
}

TEST_CASE("line reader: the lines of Lines, plain and packed") {
  test::TempDir folder;
  for (const char* content : {"a", "a\nb\r\n\n c \n", "\n", "\uFEFFa\u2028b\n\u0085\nlast"}) {
    test::write_bytes(folder / "plain", content);
    test::write_bytes(folder / "packed", test::gzip(content));
    std::vector<std::string> expected;
    std::string_view rest = content;
    if (rest.starts_with("\uFEFF")) rest.remove_prefix(3);
    Lines lines(rest);
    while (const std::optional<Line> line = lines.next()) expected.emplace_back(line->text);
    CHECK(read_lines(folder / "plain") == expected);
    CHECK(read_lines(folder / "packed") == expected);
  }
  test::write_bytes(folder / "empty", "");
  CHECK(read_lines(folder / "empty").empty());
  CHECK(test::refuses(ErrorKind::kIo, "absent", [&] { LineReader(folder / "absent"); }));
}

TEST_CASE("line reader: lines across chunks, and a stream") {
  test::TempDir folder;
  std::string content;
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i * 37 % 9000), 'x') + "\u00E9");
    content += expected.back() + (i % 2 == 0 ? "\n" : "\r\n");
  }
  expected.emplace_back(700000, 'y');
  content += expected.back();
  test::write_bytes(folder / "long", content);
  CHECK((read_lines(folder / "long") == expected));
  std::FILE* stream = std::fopen((folder / "long").c_str(), "rb");
  LineReader reader(stream, "standard input");
  std::size_t count = 0;
  while (const std::optional<Line> line = reader.next()) {
    CHECK((line->text == expected[count++]));
  }
  CHECK(count == expected.size());
  std::fclose(stream);
}

TEST_CASE("line reader: a wrong byte is named by line and place") {
  test::TempDir folder;
  test::write_bytes(folder / "wrong", "fine\nab\xE9\x20z\n");
  CHECK(test::refuses(ErrorKind::kBadInput, "wrong: line 2: expected UTF-8, got e9 at byte 3",
                      [&] { read_lines(folder / "wrong"); }));
}

TEST_CASE("line reader: a line that has no end is refused") {
  test::TempDir folder;
  test::write_bytes(folder / "endless", "a\n" + std::string(kMaxLineBytes + (1 << 20), 'x'));
  CHECK(test::refuses(ErrorKind::kBadInput,
                      "endless: line 2: expected a line of at most 16777216 bytes",
                      [&] { read_lines(folder / "endless"); }));
}

}  // namespace
}  // namespace keel::text
