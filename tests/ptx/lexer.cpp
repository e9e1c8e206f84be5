#include "tests/ptx/lexer.h"

#include <cctype>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr std::string_view kSigns = "{}[]()<>,;:|+-=@!";

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (skip_blanks()) {
      const std::size_t first = at_;
      const int line = line_;
      skip_token();
      tokens_.push_back({text_.substr(first, at_ - first), line});
    }
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // Goes to the next token; false at the end.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (starts("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail("line {}: a comment without end", line_);
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
      } else if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        line_ += text_[at_++] == '\n';
      } else {
        return true;
      }
    }
    return false;
  }

  void skip_token() {
    const char c = text_[at_];
    if (is_word(c)) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else if (c == '"') {
      const std::size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) fail("line {}: a string without end", line_);
      at_ = end + 1;
    } else if (kSigns.find(c) != std::string_view::npos) {
      ++at_;
    } else {
      fail("line {}: the character '{}' is not of PTX", line_, c);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

std::vector<Token> tokens_of(std::string_view text) { return Lexer(text).run(); }

}  // namespace keel::ptx
