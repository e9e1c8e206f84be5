// Makes text from outside (files, arguments) safe to show in messages and tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace keel {

// Replaces by '?' every character that a terminal would obey instead of showing: control
// characters (C0, DEL, C1), line and paragraph separators and marks of text direction. Each byte
// that is not UTF-8 becomes '?' too.
std::string shown(std::string_view text);

// The first character of a non-empty text as shown() prints it, and the number of bytes that it
// takes in the text. Nothing is allocated.
struct ShownCharacter {
  std::string_view text;
  std::size_t bytes;
};
ShownCharacter first_shown(std::string_view text) noexcept;

// The maximum number of bytes of a message, or of a cell of a table.
constexpr std::size_t kMostShownBytes = 4000;

// Cuts the middle out of a text of more than `most` bytes and says how many bytes that was.
std::string shortened(std::string_view text, std::size_t most);

// Quotes the text as one word of a shell command line.
std::string shell_quoted(std::string_view text);

}  // namespace keel
