// Lines and words: every end of line, and what is no end and no blank.
#include "frontend/text/lines.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace keel::text {
namespace {

using Texts = std::vector<std::string>;

Texts lines_of(std::string_view content) {
  Texts texts;
  Lines lines(content);
  while (const std::optional<Line> line = lines.next()) {
    texts.emplace_back(line->text);
    CHECK(line->number == std::ssize(texts));
  }
  CHECK(!lines.next());  // the end stays the end
  return texts;
}

Texts words(std::string_view line) {
  const std::vector<std::string_view> views = words_of(line);
  return {views.begin(), views.end()};
}

TEST_CASE("lines: LF, CR LF, and a last line without an end") {
  CHECK(lines_of("").empty());
  CHECK(lines_of("a") == Texts{"a"});
  CHECK(lines_of("a\n") == Texts{"a"});
  CHECK(lines_of("a\nb") == Texts{"a", "b"});
  CHECK(lines_of("a\r\nb\r\n") == Texts{"a", "b"});
  CHECK(lines_of("a\r\nb\nc\r") == Texts{"a", "b", "c"});
  CHECK(lines_of("a\r\r\n\r\r\nb\r\r") == Texts{"a", "", "b"});
  CHECK(lines_of("\n") == Texts{""});
  CHECK(lines_of("\n\na\n\n") == Texts{"", "", "a", ""});
}

TEST_CASE("lines: nothing else ends a line") {
  for (const char* other : {"\r", "\v", "\f", "\u0085", "\u2028", "\u2029"}) {
    const std::string text = std::string("a") + other + "b";
    CHECK(lines_of(text + "\nc") == Texts{text, "c"});
  }
  CHECK(lines_of(std::string_view("a\0b\nc", 5)) == Texts{std::string("a\0b", 3), "c"});
}

TEST_CASE("words: cut at spaces and tabs alone, none of them empty") {
  CHECK(words("").empty());
  CHECK(words(" \t ").empty());
  CHECK(words("a") == Texts{"a"});
  CHECK(words("  a\t\tb  c ") == Texts{"a", "b", "c"});
  CHECK(words("2\u00A01/2 x\u3000y") == Texts{"2\u00A01/2", "x\u3000y"});
}

}  // namespace
}  // namespace keel::text
