// Which bytes are text, decoding, and lower case.
#include "frontend/text/utf8.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>

namespace keel::text {
namespace {

using At = std::optional<std::size_t>;

// The plain definition: decodes one character and looks at its number and length.
bool is_one_character(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t n = bytes.size();
  if (n == 1) return byte(0) < 0x80;
  const unsigned lead = n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0, payload = 0xFFu >> (n + 1);
  if ((byte(0) & ~payload & 0xFF) != lead) return false;
  std::uint32_t code = byte(0) & payload;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return false;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const std::uint32_t least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
  return code >= least && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

TEST_CASE("utf8: every pair of bytes, alone and as the beginning of a longer character") {
  std::size_t wrong = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string two{static_cast<char>(a), static_cast<char>(b)};
      const bool valid = is_one_character(two) ||
                         (is_one_character(two.substr(0, 1)) && is_one_character(two.substr(1)));
      wrong += valid != !first_invalid_utf8(two);
      const std::string three = two + '\x80', four = two + "\x80\xBF";
      if (a >= 0xE0 && a < 0xF0) wrong += is_one_character(three) != !first_invalid_utf8(three);
      if (a >= 0xF0) wrong += is_one_character(four) != !first_invalid_utf8(four);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("utf8: the first wrong byte is where its character begins") {
  CHECK(first_invalid_utf8("") == std::nullopt);
  CHECK(first_invalid_utf8("na\u00EFve \u2014 \U0001F600") == std::nullopt);
  CHECK(first_invalid_utf8("abc\xFF") == At(3));
  CHECK(first_invalid_utf8("abc\xC3") == At(3));          // cut
  CHECK(first_invalid_utf8("abc\xE2\x80") == At(3));      // cut later
  CHECK(first_invalid_utf8("ab\xE2\x80z\xFF") == At(2));  // broken off
  CHECK(first_invalid_utf8("a\x80") == At(1));            // stray
  CHECK(first_invalid_utf8("\xC0\x80") == At(0));         // overlong
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == At(0));
  CHECK(first_invalid_utf8(std::string_view("\0", 1)) == std::nullopt);
}

TEST_CASE("windows-1252: all 256 bytes") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string text = utf8_of_windows_1252(bytes);
  CHECK(first_invalid_utf8(text) == std::nullopt);
  CHECK(text.substr(0, 128) == bytes.substr(0, 128));
  CHECK(utf8_of_windows_1252("\x80\x85\x91\x92\x93\x94\x96\x97\x9F") ==
        "\u20AC\u2026\u2018\u2019\u201C\u201D\u2013\u2014\u0178");
  CHECK(utf8_of_windows_1252("\xA0\xE9\xFF") == "\u00A0\u00E9\u00FF");
  CHECK(utf8_of_windows_1252("\x81") == "\uFFFD");
  std::size_t undefined = 0;
  for (char c : bytes) undefined += first_invalid_windows_1252(std::string(1, c)).has_value();
  CHECK(undefined == 5);
  CHECK(first_invalid_windows_1252("caf\xE9 \x8D") == At(5));
  CHECK(first_invalid_windows_1252("caf\xE9 \x80") == std::nullopt);
}

TEST_CASE("lower case: the letters of Windows-1252 and nothing else") {
  CHECK(lower_case("The ROCK, 21ST [AZ@{`") == "the rock, 21st [az@{`");
  CHECK(lower_case("\u00C0\u00C9\u00D6\u00D8\u00DE") == "\u00E0\u00E9\u00F6\u00F8\u00FE");
  CHECK(lower_case("\u0152\u0160\u0178\u017D") == "\u0153\u0161\u00FF\u017E");
  // The times sign, sharp s, letters outside of Windows-1252, and characters of other lengths.
  const std::string kept = "\u00D7\u00DF\u00F7\u0100\u0141\u0391\u0410\u20AC\U00010400";
  CHECK(lower_case(kept) == kept);
  // Each letter of Windows-1252 has the partner that stands 32 places after it, or beside it.
  std::string upper, lower;
  for (int byte = 0xC0; byte < 0xDF; ++byte) {
    if (byte == 0xD7) continue;
    upper += static_cast<char>(byte);
    lower += static_cast<char>(byte + 0x20);
  }
  CHECK(lower_case(utf8_of_windows_1252(upper)) == utf8_of_windows_1252(lower));
  CHECK(lower_case("\xC3") == "\xC3");
  CHECK(lower_case("\xC3Z") == "\xC3z");
}

TEST_CASE("clipped: never within a character") {
  CHECK(clipped("abc", 3) == "abc");
  CHECK(clipped("abc", 2) == "ab");
  CHECK(clipped("a\u20ACb", 4) == "a\u20AC");
  for (std::size_t most : {1u, 2u, 3u}) CHECK(clipped("a\u20ACb", most) == "a");
  CHECK(clipped("\u20AC", 2).empty());
}

}  // namespace
}  // namespace keel::text
