#include "frontend/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "src/core/error.h"

namespace keel::text {
namespace {

// The marks that combine with letters of any script.
constexpr std::array<std::array<char32_t, 2>, 7> kAccents = {{{0x0300, 0x036F},
                                                              {0x0483, 0x0489},
                                                              {0x1AB0, 0x1AFF},
                                                              {0x1DC0, 0x1DFF},
                                                              {0x20D0, 0x20FF},
                                                              {0xFE00, 0xFE0F},
                                                              {0xFE20, 0xFE2F}}};

bool is_accent(char32_t code) {
  for (const auto& [first, last] : kAccents) {
    if (first <= code && code <= last) return true;
  }
  return false;
}

bool is_circled_letter(char32_t code) {
  return (0x24B6 <= code && code <= 0x24E9) || (0x1F130 <= code && code <= 0x1F149) ||
         (0x1F150 <= code && code <= 0x1F169) || (0x1F170 <= code && code <= 0x1F189);
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_ascii_letter(char32_t code) { return (code | 0x20) >= U'a' && (code | 0x20) <= U'z'; }

// The character that `utf8` has at `at`, which moves after it.
char32_t next_code(std::string_view utf8, std::size_t& at) {
  const auto first = static_cast<unsigned char>(utf8[at]);
  if (first < 0x80) return static_cast<unsigned char>(utf8[at++]);
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data() + at),
                       std::ssize(utf8) - static_cast<std::ptrdiff_t>(at), &code);
  check(length > 0, ErrorKind::kBadInput, "[text] expected UTF-8, got {:02x}", first);
  at += static_cast<std::size_t>(length);
  return static_cast<char32_t>(code);
}

using Utf8procCodes = std::vector<utf8proc_int32_t>;

Utf8procCodes decomposed(std::string_view utf8, utf8proc_option_t options) {
  constexpr std::size_t kLongest = 18;  // of a character's decompositions, that of U+FDFA
  Utf8procCodes codes;
  codes.reserve(utf8.size());
  std::array<utf8proc_int32_t, kLongest> parts{};
  for (std::size_t at = 0; at < utf8.size();) {
    const auto code = static_cast<utf8proc_int32_t>(next_code(utf8, at));
    int unused = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(code, parts.data(), std::ssize(parts), options, &unused);
    check(count >= 0 && count <= std::ssize(parts), ErrorKind::kInternal,
          "[text] cannot decompose the character {:x}", code);
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  return codes;
}

// Marks that follow each other stand by their classes, as Unicode's canonical order has them.
// utf8proc would do that itself, but in a time that grows with the square of their number.
void order_marks(Utf8procCodes& codes) {
  const auto rank = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  const auto is_mark = [&](utf8proc_int32_t code) { return rank(code) != 0; };
  for (auto at = codes.begin(); at != codes.end();) {
    const auto first = std::find_if(at, codes.end(), is_mark);
    at = std::find_if_not(first, codes.end(), is_mark);
    std::ranges::stable_sort(first, at, {}, rank);
  }
}

}  // namespace

std::u32string code_points(std::string_view utf8) {
  std::u32string codes;
  codes.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) codes += next_code(utf8, at);
  return codes;
}

void append_utf8(std::string& utf8, char32_t code) {
  if (code < 0x80) {
    utf8 += static_cast<char>(code);
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  utf8.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

std::string utf8_of(std::u32string_view codes) {
  std::string utf8;
  utf8.reserve(codes.size());
  for (char32_t code : codes) append_utf8(utf8, code);
  return utf8;
}

bool is_letter(char32_t code) {
  if (code < 0x80) return is_ascii_letter(code);
  switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
      return true;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
      return !is_accent(code);
    default:
      return is_circled_letter(code);
  }
}

bool is_digit(char32_t code) {
  if (code < 0x80) return U'0' <= code && code <= U'9';
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_number(char32_t code) {
  if (code < 0x80) return is_digit(code);
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t code) {
  if (code < 0x80) return U'a' <= code && code <= U'z';
  return category(code) == UTF8PROC_CATEGORY_LL;
}

bool is_currency(char32_t code) { return category(code) == UTF8PROC_CATEGORY_SC; }

bool is_printable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
      return false;
    default:
      return true;
  }
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == U' ' || (U'\t' <= code && code <= U'\r');
  if (code == 0x85) return true;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

std::vector<std::string_view> split_at_spaces(std::string_view utf8) {
  std::vector<std::string_view> words;
  std::size_t first = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t here = at;
    if (!is_space(next_code(utf8, at))) continue;
    if (here > first) words.push_back(utf8.substr(first, here - first));
    first = at;
  }
  if (first < utf8.size()) words.push_back(utf8.substr(first));
  return words;
}

std::string lower_case_unicode(std::string_view utf8) {
  std::string lower;
  lower.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    const char32_t code = next_code(utf8, at);
    if (code < 0x80) {
      lower += static_cast<char>(U'A' <= code && code <= U'Z' ? code + 0x20 : code);
    } else {
      append_utf8(lower,
                  static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  }
  return lower;
}

std::string normalized(std::string_view utf8, Normalization form) {
  if (std::ranges::all_of(utf8, [](char c) { return (c & 0x80) == 0; })) return std::string(utf8);
  const auto compatible = form == Normalization::kNfkc ? UTF8PROC_COMPAT : utf8proc_option_t{};
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | compatible);
  std::vector<utf8proc_int32_t> codes = decomposed(utf8, options);
  order_marks(codes);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(codes.data(), std::ssize(codes), options);
  check(length >= 0, ErrorKind::kBadInput, "[text] cannot compose characters: {}",
        utf8proc_errmsg(length));
  codes.resize(static_cast<std::size_t>(length));
  std::string composed;
  composed.reserve(utf8.size());
  for (const utf8proc_int32_t code : codes) append_utf8(composed, static_cast<char32_t>(code));
  return composed;
}

}  // namespace keel::text
