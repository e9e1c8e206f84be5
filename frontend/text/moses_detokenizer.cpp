#include "frontend/text/moses_detokenizer.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "frontend/text/finnish_endings.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

using Word = std::u32string;
using WordView = std::u32string_view;

// Blocks of Chinese, Japanese and Korean characters. Wide signs such as U+FF0C are in none of them.
constexpr std::array<std::array<char32_t, 2>, 8> kEastAsian = {{{0x1100, 0x11FF},
                                                                {0x2E80, 0xA4CF},
                                                                {0xA840, 0xA87F},
                                                                {0xAC00, 0xD7AF},
                                                                {0xF900, 0xFAFF},
                                                                {0xFE30, 0xFE4F},
                                                                {0xFF65, 0xFFDC},
                                                                {0x20000, 0x2FFFF}}};

bool is_east_asian(char32_t code) {
  return std::ranges::any_of(
      kEastAsian, [&](const auto& block) { return block[0] <= code && code <= block[1]; });
}

bool consists_of(WordView word, WordView characters) {
  return !word.empty() && word.find_first_not_of(characters) == WordView::npos;
}

bool is_one_of(WordView word, WordView characters) {
  return word.size() == 1 && consists_of(word, characters);
}

bool is_decimal(WordView word) { return consists_of(word, U"0123456789"); }

bool opens(WordView word) {
  return !word.empty() && std::ranges::all_of(word, [](char32_t code) {
    return is_currency(code) || WordView(U"([{\u00BF\u00A1").find(code) != WordView::npos;
  });
}

bool closes(WordView word) { return consists_of(word, U",.?!:;\\%}])"); }

bool is_quote(WordView word) { return consists_of(word, U"'\"\u201E\u201C`"); }

// The words between single spaces. Two spaces have an empty word between them, as in Moses, where
// it keeps the words round it apart.
std::vector<Word> words_with_empty_ones(const Word& text) {
  std::vector<Word> words;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(U' ', first), text.size());
    words.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  while (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// Puts words one after the other; whether the next one wants a space depends on those before.
class Joiner {
 public:
  Joiner(std::vector<Word> words, std::string_view language)
      : words_(std::move(words)), language_(language) {}

  std::string join() {
    for (at_ = 0; at_ < words_.size(); ++at_) place(words_[at_]);
    return utf8_of(text_);
  }

 private:
  void place(const Word& word) {
    if (!word.empty() && is_east_asian(word[0])) {
      space_ = space_ && !continues_east_asian();
      put(word);
    } else if (opens(word)) {
      put_before_next(word);
    } else if (closes(word)) {
      space_ = language_ == "fr" && is_one_of(word, U"?!:;\\%");
      put(word);
    } else if (is_contraction(word) || is_czech_decimal(word)) {
      put_close(word);
    } else if (is_elision(word)) {
      put_before_next(word);
    } else if (is_czech_compound(word)) {
      put_before_next(word + words_[++at_]);
    } else if (is_quote(word)) {
      quote(word);
    } else if (language_ == "fi" && before().ends_with(U':') && is_finnish_ending(word)) {
      put_close(code_points(lower_case_unicode(utf8_of(word))));
    } else {
      put(word);
    }
  }

  // The word before, and the one `steps` further on; empty beyond the ends.
  WordView before(std::size_t steps = 1) const {
    return at_ < steps ? WordView() : WordView(words_[at_ - steps]);
  }
  WordView behind(std::size_t steps = 1) const {
    return at_ + steps < words_.size() ? WordView(words_[at_ + steps]) : WordView();
  }

  bool continues_east_asian() const {
    return language_ != "ko" && !before().empty() && is_east_asian(before().back());
  }

  bool is_contraction(WordView word) const {
    return language_ == "en" && word.size() > 1 && word[0] == U'\'' && is_letter(word[1]) &&
           !before().empty() && is_alphanumeric(before().back());
  }

  bool is_czech() const { return language_ == "cs"; }

  bool is_czech_decimal(WordView word) const {
    return is_czech() && is_decimal(word) && is_one_of(before(), U".,") && is_decimal(before(2));
  }

  // The first word of "je-li" or "e-mail", where another word follows.
  bool is_czech_compound(WordView word) const {
    if (!is_czech() || word.empty() || at_ + 3 >= words_.size()) return false;
    const std::string last = lower_case_unicode(utf8_of(behind(2)));
    return is_letter(word.back()) && is_one_of(behind(), U"-\u2013") &&
           (last == "li" || last.starts_with("mail"));
  }

  bool is_elision(WordView word) const {
    return (language_ == "fr" || language_ == "it") && word.size() > 1 && word.back() == U'\'' &&
           is_letter(word[word.size() - 2]) && !behind().empty() && is_letter(behind()[0]);
  }

  void quote(const Word& word) {
    int& count = quotes_[consists_of(word, U"\u201E\u201C") ? U"\"" : word];
    if (is_czech() && word == U"\u201E") count = 0;
    if (is_czech() && word == U"\u201C") count = 1;
    if (count % 2 == 1) {
      put_close(word);
      ++count;
    } else if (language_ == "en" && word == U"'" && before().ends_with(U's')) {
      put_close(word);
    } else {
      put_before_next(word);
      ++count;
    }
  }

  void put(WordView word) {
    if (space_ && !text_.empty() && text_.back() != U' ') text_ += U' ';
    text_ += word;
    space_ = true;
  }
  void put_close(WordView word) {
    space_ = false;
    put(word);
  }
  void put_before_next(WordView word) {
    put(word);
    space_ = false;
  }

  const std::vector<Word> words_;
  const std::string_view language_;
  std::size_t at_ = 0;
  std::map<Word, int, std::less<>> quotes_;  // how many of each kind there were
  Word text_;
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
  std::string text = with_joined_hyphens(" " + std::string(tokens) + " ");
  if (options.unescape) text = moses_unescaped(text);
  return Joiner(words_with_empty_ones(code_points(text)), options.language).join();
}

}  // namespace keel::text
