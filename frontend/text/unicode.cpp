#include "frontend/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "src/core/error.h"

namespace keel::text {
namespace {

// The marks (categories Mn and Mc) that are not Alphabetic, by Unicode 14: accents, signs that mute
// a vowel, points, tones. utf8proc does not have the property.
constexpr std::array<std::array<char32_t, 2>, 170> kOtherMarks = {
    {{0x0300, 0x0344},   {0x0346, 0x036F},   {0x0483, 0x0487},   {0x0591, 0x05AF},
     {0x0658, 0x0658},   {0x06DF, 0x06E0},   {0x06EA, 0x06EC},   {0x0740, 0x074A},
     {0x07EB, 0x07F3},   {0x07FD, 0x07FD},   {0x0818, 0x0819},   {0x082D, 0x082D},
     {0x0859, 0x085B},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x08E0, 0x08E1},
     {0x08EA, 0x08EF},   {0x093C, 0x093C},   {0x094D, 0x094D},   {0x0951, 0x0954},
     {0x09BC, 0x09BC},   {0x09CD, 0x09CD},   {0x09FE, 0x09FE},   {0x0A3C, 0x0A3C},
     {0x0A4D, 0x0A4D},   {0x0ABC, 0x0ABC},   {0x0ACD, 0x0ACD},   {0x0AFD, 0x0AFF},
     {0x0B3C, 0x0B3C},   {0x0B4D, 0x0B4D},   {0x0B55, 0x0B55},   {0x0BCD, 0x0BCD},
     {0x0C04, 0x0C04},   {0x0C3C, 0x0C3C},   {0x0C4D, 0x0C4D},   {0x0CBC, 0x0CBC},
     {0x0CCD, 0x0CCD},   {0x0D3B, 0x0D3C},   {0x0D4D, 0x0D4D},   {0x0DCA, 0x0DCA},
     {0x0E47, 0x0E4C},   {0x0E4E, 0x0E4E},   {0x0EBA, 0x0EBA},   {0x0EC8, 0x0ECC},
     {0x0F18, 0x0F19},   {0x0F35, 0x0F35},   {0x0F37, 0x0F37},   {0x0F39, 0x0F39},
     {0x0F3E, 0x0F3F},   {0x0F82, 0x0F84},   {0x0F86, 0x0F87},   {0x0FC6, 0x0FC6},
     {0x1037, 0x1037},   {0x1039, 0x103A},   {0x135D, 0x135F},   {0x1714, 0x1715},
     {0x1734, 0x1734},   {0x17B4, 0x17B5},   {0x17C9, 0x17D3},   {0x17DD, 0x17DD},
     {0x180B, 0x180D},   {0x180F, 0x180F},   {0x1939, 0x193B},   {0x1A60, 0x1A60},
     {0x1A75, 0x1A7C},   {0x1A7F, 0x1A7F},   {0x1AB0, 0x1ABD},   {0x1AC1, 0x1ACB},
     {0x1B34, 0x1B34},   {0x1B44, 0x1B44},   {0x1B6B, 0x1B73},   {0x1BAA, 0x1BAB},
     {0x1BE6, 0x1BE6},   {0x1BF2, 0x1BF3},   {0x1C37, 0x1C37},   {0x1CD0, 0x1CD2},
     {0x1CD4, 0x1CE8},   {0x1CED, 0x1CED},   {0x1CF4, 0x1CF4},   {0x1CF7, 0x1CF9},
     {0x1DC0, 0x1DE6},   {0x1DF5, 0x1DFF},   {0x20D0, 0x20DC},   {0x20E1, 0x20E1},
     {0x20E5, 0x20F0},   {0x2CEF, 0x2CF1},   {0x2D7F, 0x2D7F},   {0x302A, 0x302F},
     {0x3099, 0x309A},   {0xA66F, 0xA66F},   {0xA67C, 0xA67D},   {0xA6F0, 0xA6F1},
     {0xA806, 0xA806},   {0xA82C, 0xA82C},   {0xA8C4, 0xA8C4},   {0xA8E0, 0xA8F1},
     {0xA92B, 0xA92D},   {0xA953, 0xA953},   {0xA9B3, 0xA9B3},   {0xA9C0, 0xA9C0},
     {0xAABF, 0xAABF},   {0xAAC1, 0xAAC1},   {0xAAF6, 0xAAF6},   {0xABEC, 0xABED},
     {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F},   {0x101FD, 0x101FD}, {0x102E0, 0x102E0},
     {0x10A38, 0x10A3A}, {0x10A3F, 0x10A3F}, {0x10AE5, 0x10AE6}, {0x10F46, 0x10F50},
     {0x10F82, 0x10F85}, {0x11046, 0x11046}, {0x11070, 0x11070}, {0x1107F, 0x11081},
     {0x110B9, 0x110BA}, {0x11133, 0x11134}, {0x11173, 0x11173}, {0x111C0, 0x111C0},
     {0x111C9, 0x111CC}, {0x11235, 0x11236}, {0x112E9, 0x112EA}, {0x1133B, 0x1133C},
     {0x1134D, 0x1134D}, {0x11366, 0x1136C}, {0x11370, 0x11374}, {0x11442, 0x11442},
     {0x11446, 0x11446}, {0x1145E, 0x1145E}, {0x114C2, 0x114C3}, {0x115BF, 0x115C0},
     {0x1163F, 0x1163F}, {0x116B6, 0x116B7}, {0x1172B, 0x1172B}, {0x11839, 0x1183A},
     {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A33, 0x11A34},
     {0x11A47, 0x11A47}, {0x11A98, 0x11A99}, {0x11C3F, 0x11C3F}, {0x11D42, 0x11D42},
     {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x16AF0, 0x16AF4}, {0x16B30, 0x16B36},
     {0x16FE4, 0x16FE4}, {0x1BC9D, 0x1BC9D}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46},
     {0x1D165, 0x1D169}, {0x1D16D, 0x1D172}, {0x1D17B, 0x1D182}, {0x1D185, 0x1D18B},
     {0x1D1AA, 0x1D1AD}, {0x1D242, 0x1D244}, {0x1DA00, 0x1DA36}, {0x1DA3B, 0x1DA6C},
     {0x1DA75, 0x1DA75}, {0x1DA84, 0x1DA84}, {0x1DA9B, 0x1DA9F}, {0x1DAA1, 0x1DAAF},
     {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E8D0, 0x1E8D6},
     {0x1E944, 0x1E946}, {0x1E948, 0x1E94A}}};

bool is_other_mark(char32_t code) {
  const auto* range =
      std::ranges::upper_bound(kOtherMarks, code, {}, [](const auto& marks) { return marks[0]; });
  return range != kOtherMarks.begin() && code <= (*(range - 1))[1];
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
      return !is_other_mark(code);
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
    } else if (code == 0x130) {
      lower += "i\u0307";
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
