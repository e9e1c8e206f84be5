#include "frontend/text/utf8.h"

#include <array>
#include <cstdint>

namespace keel::text {
namespace {

constexpr char32_t kNone = 0;

// The characters that the bytes 80 to 9f stand for; from a0 on a byte is its own code point.
constexpr std::array<char32_t, 32> kWindows = {
    0x20AC, kNone,  0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,   // 80 to 87
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, kNone,  0x017D, kNone,    // 88 to 8f
    kNone,  0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,   // 90 to 97
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, kNone,  0x017E, 0x0178};  // 98 to 9f

constexpr std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

constexpr bool within(std::uint8_t byte, std::uint8_t low, std::uint8_t high) {
  return low <= byte && byte <= high;
}

// How many bytes a character has that begins with `first`; 0 when none does.
std::size_t length_of(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (within(first, 0xC2, 0xDF)) return 2;
  if (within(first, 0xE0, 0xEF)) return 3;
  return within(first, 0xF0, 0xF4) ? 4 : 0;
}

// The second byte is enough to tell overlong forms, surrogates and too large numbers.
bool second_fits(std::uint8_t first, std::uint8_t second) {
  switch (first) {
    case 0xE0:
      return within(second, 0xA0, 0xBF);
    case 0xED:
      return within(second, 0x80, 0x9F);
    case 0xF0:
      return within(second, 0x90, 0xBF);
    case 0xF4:
      return within(second, 0x80, 0x8F);
    default:
      return within(second, 0x80, 0xBF);
  }
}

// Bytes of the character that `bytes` begins with; 0 when there is none.
std::size_t character_length(std::string_view bytes) {
  const std::size_t length = length_of(byte_of(bytes[0]));
  if (length == 0 || length > bytes.size()) return 0;
  if (length > 1 && !second_fits(byte_of(bytes[0]), byte_of(bytes[1]))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (!within(byte_of(bytes[i]), 0x80, 0xBF)) return 0;
  }
  return length;
}

// A code point below 0x10000.
void append(std::string& text, char32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// The lower-case partner of a code point of two bytes, or itself.
constexpr char32_t lower(char32_t code) {
  if (code >= 0xC0 && code <= 0xDE && code != 0xD7) return code + 0x20;  // D7 is a sign
  if (code == 0x152 || code == 0x160 || code == 0x17D) return code + 1;
  return code == 0x178 ? 0xFF : code;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = character_length(bytes.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::optional<std::size_t> first_invalid_windows_1252(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const std::uint8_t byte = byte_of(bytes[at]);
    if (within(byte, 0x80, 0x9F) && kWindows[byte - 0x80u] == kNone) return at;
  }
  return std::nullopt;
}

std::string utf8_of_windows_1252(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (char c : bytes) {
    const std::uint8_t byte = byte_of(c);
    const char32_t code = within(byte, 0x80, 0x9F) ? kWindows[byte - 0x80u] : byte;
    append(text, code == kNone && byte != 0 ? 0xFFFD : code);
  }
  return text;
}

std::string lower_case(std::string_view utf8) {
  std::string text;
  text.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size(); ++at) {
    const std::uint8_t first = byte_of(utf8[at]);
    if (within(first, 0xC3, 0xC5) && character_length(utf8.substr(at)) == 2) {
      const char32_t low = byte_of(utf8[++at]) & 0x3Fu;
      append(text, lower((first & 0x1Fu) << 6 | low));
    } else {
      text += within(first, 'A', 'Z') ? static_cast<char>(first + 0x20) : utf8[at];
    }
  }
  return text;
}

std::string_view clipped(std::string_view utf8, std::size_t most) {
  if (utf8.size() <= most) return utf8;
  while (most > 0 && within(byte_of(utf8[most]), 0x80, 0xBF)) --most;
  return utf8.substr(0, most);
}

}  // namespace keel::text
