// Reads tokens one after the other, and the declarations that modules and functions share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/lexer.h"

namespace keel::ptx {

// Memory that PTX declares: a variable or a parameter.
struct Variable {
  std::string name;
  std::int64_t bytes = 0, align = 1;
  std::vector<std::byte> initial;  // the first bytes, if they are given
};

class Reader {
 public:
  explicit Reader(std::span<const Token> tokens) : tokens_(tokens) {}

  bool is_done() const { return at_ == tokens_.size(); }
  bool sees(std::string_view text) const { return !is_done() && tokens_[at_].is(text); }
  const Token& peek() const;
  const Token& next();
  // Takes the next token if it is this one.
  bool take(std::string_view text);
  void expect(std::string_view text);
  // An integer, decimal, hexadecimal or octal, with its sign.
  std::int64_t integer();
  // The text after `.shared` or the like: ".align 8 .b8 name[16] = {1, 2}", without the semicolon.
  Variable variable();
  // The tokens within a pair of braces of which the first was taken; takes the other one too.
  std::span<const Token> braced();
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  std::span<const Token> tokens_;
  std::size_t at_ = 0;
};

// The bits of a number as PTX writes it: 12, 0x1F, 0f3F800000 (a float), 0d3FF0000000000000.
std::uint64_t literal(std::string_view text, int line);

// The bytes of an element of a type such as ".f32".
std::int64_t bytes_of_type(std::string_view type, int line);

}  // namespace keel::ptx
