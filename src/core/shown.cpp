#include "src/core/shown.h"

#include <fmt/format.h>

#include <algorithm>

namespace keel {
namespace {

// A character of UTF-8 and how many bytes it has; 0 bytes where there is none.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

Character first_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool is_overlong = code < (bytes == 2 ? 0x80U : bytes == 3 ? 0x800U : 0x10000U);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return is_overlong || is_surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

bool is_obeyed(char32_t c) {
  const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
  const bool is_direction = c == 0x061C || c == 0x200E || c == 0x200F ||
                            (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return is_control || is_direction;
}

// Whether a character may begin here: the byte is none of those that go on with one.
bool is_boundary(std::string_view text, std::size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

}  // namespace

ShownCharacter first_shown(std::string_view text) noexcept {
  const Character c = first_character(text);
  const bool is_hidden = c.bytes == 0 || is_obeyed(c.code);
  const std::string_view as_shown = is_hidden ? "?" : text.substr(0, c.bytes);
  return {as_shown, std::max<std::size_t>(c.bytes, 1)};
}

std::string shown(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const ShownCharacter first = first_shown(text);
    result += first.text;
    text.remove_prefix(first.bytes);
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t head = most / 4 * 3, tail = text.size() - most / 4;
  // A character, of at most four bytes, is never cut in two.
  for (int i = 0; i < 3 && !is_boundary(text, head); ++i) --head;
  for (int i = 0; i < 3 && !is_boundary(text, tail); ++i) ++tail;
  return fmt::format("{}...({} bytes more)...{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace keel
