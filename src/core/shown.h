// Text from outside, out of files and arguments, as messages and tables show it to people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace keel {

// The text with a '?' for every character that a terminal obeys instead of showing it: controls
// (C0, DEL, C1), line and paragraph separators, marks of the direction of writing; and for every
// byte that is not UTF-8.
std::string shown(std::string_view text);

// The first character of a text that has one, as shown() has it, and how many bytes it takes in the
// text. Nothing is allocated.
struct ShownCharacter {
  std::string_view text;
  std::size_t bytes;
};
ShownCharacter first_shown(std::string_view text) noexcept;

// Bytes of a message, or of a cell of a table, at the most.
constexpr std::size_t kMostShownBytes = 4000;

// A text of more than `most` bytes without its middle, and how many bytes that had.
std::string shortened(std::string_view text, std::size_t most);

// The text as one word of a shell's command line.
std::string shell_quoted(std::string_view text);

}  // namespace keel
