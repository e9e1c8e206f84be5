// The tokens of a long text, kept in little memory.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/lines.h"

namespace keel::models {

// Tokens in their order, kept as one text with a blank between two of them: a token takes one byte
// more than its letters, where a std::string takes 32 or more. The 380,000 passages of CNN have 300
// million tokens.
class TokenText {
 public:
  TokenText() = default;
  TokenText(std::initializer_list<std::string_view> tokens) { add_all(tokens); }
  // Takes a text with any number of blanks between its tokens.
  explicit TokenText(std::string_view text) { add_all(text::words_of(text)); }

  // A token is not empty and has no blank in it (text::is_blank).
  void add(std::string_view token) {
    if (count_++ > 0) text_ += ' ';
    text_ += token;
  }
  template <class Tokens>
  void add_all(const Tokens& tokens) {
    for (const auto& token : tokens) add(token);
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const std::string& text() const { return text_; }
  // Valid while the text is neither changed nor destroyed.
  std::vector<std::string_view> views() const { return text::words_of(text_); }
  void shrink_to_fit() { text_.shrink_to_fit(); }

  bool operator==(const TokenText&) const = default;

 private:
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace keel::models
