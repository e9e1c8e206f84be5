#include "frontend/text/moses_detokenizer.h"

#include <algorithm>
#include <map>
#include <vector>

#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

using Words32 = std::vector<std::u32string>;

bool consists_of(std::u32string_view token, std::u32string_view characters) {
  return token.find_first_not_of(characters) == std::u32string_view::npos;
}

bool opens(std::u32string_view token) {
  return std::ranges::all_of(token, [](char32_t code) {
    return is_currency(code) ||
           std::u32string_view(U"([{\u00BF\u00A1").find(code) != std::u32string_view::npos;
  });
}

bool closes(std::u32string_view token) { return consists_of(token, U",.?!:;\\%}])"); }

bool quotes(std::u32string_view token) { return consists_of(token, U"'\"\u201E\u201C`"); }

// Puts tokens one after the other; whether the next one wants a space depends on those before.
class Joiner {
 public:
  Joiner(const Words32& tokens, std::string_view language)
      : tokens_(tokens), english_(language == "en") {
    roman_ = language == "fr" || language == "it" || language == "ga";
  }

  std::string join() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) place(i);
    return utf8_of(text_);
  }

 private:
  void place(std::size_t i) {
    const std::u32string& token = tokens_[i];
    if (opens(token)) {
      put_before_next(token);
    } else if (closes(token) || is_contraction(i)) {
      put_close(token);
    } else if (is_elision(i)) {
      put_before_next(token);
    } else if (quotes(token)) {
      quote(i);
    } else {
      put(token);
    }
  }

  bool is_contraction(std::size_t i) const {
    const std::u32string& token = tokens_[i];
    return english_ && i > 0 && token.size() > 1 && token[0] == U'\'' && is_letter(token[1]);
  }

  bool is_elision(std::size_t i) const {
    const std::u32string& token = tokens_[i];
    return roman_ && i + 1 < tokens_.size() && token.size() > 1 && token.back() == U'\'' &&
           is_letter(token[token.size() - 2]) && is_letter(tokens_[i + 1][0]);
  }

  void quote(std::size_t i) {
    const std::u32string& token = tokens_[i];
    int& count = quotes_[consists_of(token, U"\u201E\u201C") ? U"\"" : token];
    if (count % 2 == 1) {
      put_close(token);
      ++count;
    } else if (english_ && token == U"'" && i > 0 && tokens_[i - 1].back() == U's') {
      put_close(token);
    } else {
      put_before_next(token);
      ++count;
    }
  }

  void put(const std::u32string& token) {
    if (space_ && !text_.empty()) text_ += U' ';
    text_ += token;
    space_ = true;
  }
  void put_close(const std::u32string& token) {
    text_ += token;
    space_ = true;
  }
  void put_before_next(const std::u32string& token) {
    put(token);
    space_ = false;
  }

  const Words32& tokens_;
  bool english_, roman_ = false;
  std::map<std::u32string, int> quotes_;  // how many of each kind there were
  std::u32string text_;
  bool space_ = true;
};

// Every " @-@ " as a hyphen.
std::string with_joined_hyphens(std::string_view tokens) {
  constexpr std::string_view kHyphen = " @-@ ";
  std::string text;
  while (true) {
    const std::size_t at = tokens.find(kHyphen);
    text += tokens.substr(0, at);
    if (at == std::string_view::npos) return text;
    text += '-';
    tokens.remove_prefix(at + kHyphen.size());
  }
}

}  // namespace

std::string moses_detokenized(std::string_view tokens, const DetokenizeOptions& options) {
  std::string text = with_joined_hyphens(tokens);
  if (options.unescape) text = moses_unescaped(text);
  Words32 words;
  for (std::string_view word : split_at_spaces(text)) words.push_back(code_points(word));
  return Joiner(words, options.language).join();
}

}  // namespace keel::text
