// Cuts PTX into words, signs and strings; comments are left out.
#pragma once

#include <string_view>
#include <vector>

namespace keel::ptx {

// A word holds letters, digits and _ $ % . and so is a whole "ld.global.v4.f32" or "%tid.x". A
// sign is one character, a string has its quotes.
struct Token {
  std::string_view text;
  int line = 0;
  bool is(std::string_view other) const { return text == other; }
};

// The tokens refer to `text`. Throws Fault for a character that PTX does not have.
std::vector<Token> tokens_of(std::string_view text);

bool is_word(char c);

}  // namespace keel::ptx
