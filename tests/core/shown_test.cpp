// Text as people see it: terminals obey none of it, and no long input is repeated.
#include "src/core/shown.h"

#include <doctest/doctest.h>

#include "src/core/error.h"

namespace keel {
namespace {

TEST_CASE("shown: what a terminal obeys becomes a question mark, all else stays") {
  const struct {
    const char *given, *expected;
  } rows[] = {
      {"plain ~ text", "plain ~ text"},
      {"a\x1b[31mb\r\n\tc\x7f", "a?[31mb???c?"},
      {"a\u0085b\u009bc\u00a0d", "a?b?c\u00a0d"},
      {"\u202a\u202b\u202c\u202d\u202e|\u2029\u2028", "?????|??"},
      {"\u2065\u2066\u2067\u2068\u2069\u206a", "\u2065????\u206a"},
      {"\u061c\u200d\u200e\u200f\u2010", "?\u200d??\u2010"},
      {"\u00e9\u4e16\U0001f600", "\u00e9\u4e16\U0001f600"},
      {"a\xff\xc3", "a??"},
      {"\xc0\xaf\xe0\x80\x80", "?????"},              // forms that are too long
      {"\xed\xa0\x80\xf4\x90\x80\x80", "???????"},    // half of a pair; beyond the last character
      {"\xf0\x8f\xbf\xbf|\xed\xb0\x80", "????|???"},  // too long; the other half of a pair
      {"\xe2\x82", "??"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.expected));
    CHECK(shown(row.given) == row.expected);
  }
  CHECK(shown(std::string_view("a\0b", 3)) == "a?b");
}

TEST_CASE("shown: the first character, and how far the next one is") {
  const struct {
    const char *given, *text;
    std::size_t bytes;
  } rows[] = {{"ab", "a", 1},      {"\x1b[K", "?", 1},   {"\u00e9b", "\u00e9", 2},
              {"\u202eb", "?", 3}, {"\xe2\x82", "?", 1}, {"\U0001f600", "\U0001f600", 4},
              {"\u0085b", "?", 2}};
  for (const auto& row : rows) {
    const ShownCharacter first = first_shown(row.given);
    CAPTURE(std::string(row.text));
    CHECK(first.text == row.text);
    CHECK(first.bytes == row.bytes);
  }
}

TEST_CASE("shown: a long text loses its middle, and says how much") {
  CHECK(shortened("12345678", 8) == "12345678");
  CHECK(shortened("123456789", 8) == "123456...(1 bytes more)...89");
  const std::string wide = shortened("\u4e16\u4e16\u4e16\u4e16", 8);  // 12 bytes
  CHECK(wide == "\u4e16\u4e16...(6 bytes more)...");
  CHECK(shown(wide) == wide);
  CHECK(shortened("a\u4e16\u4e16\u4e16", 8) == "a\u4e16...(6 bytes more)...");
}

TEST_CASE("shown: no message repeats a megabyte") {
  std::string what;
  try {
    fail(ErrorKind::kUsage, "expected a number, got '{}'!", std::string(1 << 20, '1'));
  } catch (const Error& error) {
    what = error.what();
  }
  CHECK(what.size() < 4100);
  CHECK(what.starts_with("expected a number, got '111"));
  CHECK(what.ends_with("11'!"));
}

TEST_CASE("shown: words for a shell") {
  CHECK(shell_quoted("runs/a-b_1.2") == "runs/a-b_1.2");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a b") == "'a b'");
  CHECK(shell_quoted("it's;$(x)`y`") == "'it'\\''s;$(x)`y`'");
  CHECK(shell_quoted("a\nb") == "'a\nb'");
}

}  // namespace
}  // namespace keel
