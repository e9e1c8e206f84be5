// Characters by their Unicode properties, through utf8proc. Texts must be well-formed UTF-8: check
// with first_invalid_utf8 first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The code points of a text, and back.
std::u32string code_points(std::string_view utf8);
void append_utf8(std::string& utf8, char32_t code);
std::string utf8_of(std::u32string_view codes);

// Unicode's Alphabetic: letters, letter-like numbers, circled letters, and the vowel signs of
// scripts that write them as marks. Other marks, such as combining accents and the signs that mute
// a vowel, are not letters themselves; normalized() joins accents to their letters.
bool is_letter(char32_t code);
bool is_digit(char32_t code);      // a decimal digit of any script
bool is_number(char32_t code);     // digits, fractions, Roman and circled numbers
bool is_lower(char32_t code);      // a letter in lower case
bool is_currency(char32_t code);   // a currency sign
bool is_space(char32_t code);      // White_Space: the no-break space and line separators too
bool is_printable(char32_t code);  // not of category C: control, format, private, unassigned
inline bool is_alphanumeric(char32_t code) { return is_letter(code) || is_digit(code); }

// The words between white space; none is empty.
std::vector<std::string_view> split_at_spaces(std::string_view utf8);

// Converts capitals of every script to lower case, one character for one, but U+0130, the I with a
// dot, becomes i and U+0307, the dot above.
std::string lower_case_unicode(std::string_view utf8);

// Canonical composition, or compatibility composition, which also replaces ligatures, wide and
// circled forms by plain characters. Throws Error{kMemory} when memory is short.
enum class Normalization : std::uint8_t { kNfc, kNfkc };
std::string normalized(std::string_view utf8, Normalization form);

}  // namespace keel::text
