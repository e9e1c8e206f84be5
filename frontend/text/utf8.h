// Bytes of text: tests for UTF-8, conversion of Windows-1252 to UTF-8, and lower case.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace keel::text {

// The offset of the first byte that does not belong to well-formed UTF-8, or nothing. Cut and stray
// bytes, overlong forms, surrogates and numbers beyond U+10FFFF are not well-formed (table 3-7 of
// the Unicode standard). A character that is cut or wrong is reported at its first byte.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes);

// The offset of the first of the five bytes that have no character in Windows-1252 (81 8d 8f 90
// 9d), or nothing.
std::optional<std::size_t> first_invalid_windows_1252(std::string_view bytes);

// Converts Windows-1252, which includes ASCII, to UTF-8. The five bytes without a character become
// U+FFFD, the replacement character; check with first_invalid_windows_1252 first.
std::string utf8_of_windows_1252(std::string_view bytes);

// The same UTF-8 text with its capitals in lower case, but only those of Windows-1252: A to Z,
// U+00C0 to U+00DE, and the letters U+0152, U+0160, U+0178 and U+017D. Every other byte stays.
std::string lower_case(std::string_view utf8);

// The first bytes of a text, at most `most`, without cutting a character: for messages.
std::string_view clipped(std::string_view utf8, std::size_t most);

}  // namespace keel::text
