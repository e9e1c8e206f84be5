// Characters by their Unicode properties, through utf8proc. Texts are well-formed UTF-8: ask
// first_invalid_utf8 before.
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
// scripts that write them as marks. Combining accents, which stand after any letter, are no
// letters themselves; normalized() joins them to theirs.
bool is_letter(char32_t code);
bool is_digit(char32_t code);      // a decimal digit of any script
bool is_number(char32_t code);     // digits, fractions, Roman and circled numbers
bool is_lower(char32_t code);      // a letter in lower case
bool is_currency(char32_t code);   // a sign of money
bool is_space(char32_t code);      // White_Space: the no-break space and line separators too
bool is_printable(char32_t code);  // of no category C: control, format, private, unassigned
inline bool is_alphanumeric(char32_t code) { return is_letter(code) || is_digit(code); }

// What stands between white space, none of it empty.
std::vector<std::string_view> split_at_spaces(std::string_view utf8);

// Every capital of every script in lower case, one character for one (U+0130 becomes i).
std::string lower_case_unicode(std::string_view utf8);

// Canonical composition, or compatibility composition, which also replaces ligatures, wide and
// circled forms by plain characters. Throws Error{kMemory} when memory is short.
enum class Normalization : std::uint8_t { kNfc, kNfkc };
std::string normalized(std::string_view utf8, Normalization form);

}  // namespace keel::text
