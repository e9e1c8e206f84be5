#include "frontend/text/moses_tokenizer.h"

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

// A dot among several; no character has this number.
constexpr char32_t kJoinedDot = 0x110000;

using Codes = std::u32string;
using CodesView = std::u32string_view;

// Rule 1.
Codes squeezed(const Codes& text) {
  Codes out;
  for (char32_t code : text) {
    if (is_space(code)) {
      if (!out.empty() && out.back() != U' ') out += U' ';
    } else if (code >= 0x20) {
      out += code;
    }
  }
  if (out.ends_with(U' ')) out.pop_back();
  return out;
}

// The signs that may stand within a word of the language.
CodesView signs_within_words(std::string_view language) {
  if (language == "fi" || language == "sv") return U" .'`,-:";
  return language == "ca" ? U" .'`,-\u00B7" : U" .'`,-";
}

Codes with_spaces_round(const Codes& text, const std::function<bool(std::size_t)>& stands_alone) {
  Codes out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (stands_alone(i)) {
      out += {U' ', text[i], U' '};
    } else {
      out += text[i];
    }
  }
  return out;
}

// Rule 2.
Codes with_spaces_round_signs(const Codes& text, std::string_view language) {
  const CodesView within = signs_within_words(language);
  return with_spaces_round(text, [&](std::size_t i) {
    return !is_alphanumeric(text[i]) && within.find(text[i]) == CodesView::npos;
  });
}

// The end of rule 2.
Codes with_spaces_unless_before_small_letter(const Codes& text, char32_t sign) {
  return with_spaces_round(text, [&](std::size_t i) {
    return text[i] == sign && (i + 1 == text.size() || !is_lower(text[i + 1]));
  });
}

// Rule 3.
Codes with_split_hyphens(const Codes& text) {
  Codes out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool between = text[i] == U'-' && i > 0 && i + 1 < text.size() &&
                         is_alphanumeric(text[i - 1]) && is_alphanumeric(text[i + 1]);
    out += between ? CodesView(U" @-@ ") : CodesView(text).substr(i, 1);
  }
  return out;
}

// Rule 4.
Codes with_joined_dots(const Codes& text) {
  Codes out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && text[end] == U'.') ++end;
    if (end < i + 2) {
      out += text[i++];
      continue;
    }
    out += U' ' + Codes(end - i, kJoinedDot) + U' ';
    i = end;
  }
  return out;
}

// Puts `between` between two characters wherever the first is one of `left` and the second one of
// `right`. From left to right; characters that were matched are not looked at again.
template <class Left, class Right, class Between>
Codes replace_pairs(const Codes& text, Left left, Right right, Between between) {
  Codes out;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 1 < text.size() && left(text[i]) && right(text[i + 1])) {
      out += between(text[i], text[i + 1]);
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Replaces an apostrophe between two characters in the same way.
template <class Left, class Right>
void replace_apostrophe(Codes& text, Left left, Right right, CodesView by) {
  Codes out;
  for (std::size_t i = 0; i < text.size();) {
    if (i + 2 < text.size() && text[i + 1] == U'\'' && left(text[i]) && right(text[i + 2])) {
      out += text[i];
      out += by;
      out += text[i + 2];
      i += 3;
    } else {
      out += text[i++];
    }
  }
  text = std::move(out);
}

// Rule 5.
Codes with_split_commas(const Codes& text) {
  const auto comma = [](char32_t code) { return code == U','; };
  const auto other = [](char32_t code) { return !is_number(code); };
  Codes out = replace_pairs(text, other, comma,
                            [](char32_t before, char32_t) { return before + Codes(U" , "); });
  out = replace_pairs(out, comma, other,
                      [](char32_t, char32_t behind) { return Codes(U" , ") + behind; });
  if (out.size() > 1 && out.back() == U',' && is_number(out[out.size() - 2])) {
    out.pop_back();
    out += U" , ";
  }
  return out;
}

std::vector<CodesView> words_between_spaces(const Codes& text) {
  std::vector<CodesView> words;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find(U' ', first), text.size());
    if (end > first) words.push_back(CodesView(text).substr(first, end - first));
    first = end + 1;
  }
  return words;
}

constexpr std::array<std::pair<char, std::string_view>, 8> kEscapes = {{{'&', "&amp;"},
                                                                        {'|', "&#124;"},
                                                                        {'<', "&lt;"},
                                                                        {'>', "&gt;"},
                                                                        {'\'', "&apos;"},
                                                                        {'"', "&quot;"},
                                                                        {'[', "&#91;"},
                                                                        {']', "&#93;"}}};
constexpr std::array<std::pair<char, std::string_view>, 3> kOldEscapes = {
    {{'|', "&bar;"}, {'[', "&bra;"}, {']', "&ket;"}}};

// The character that `text` begins with in its escaped form, and the length of that; 0: none.
std::pair<char, std::size_t> escape_at(std::string_view text) {
  for (const auto& [character, name] : kEscapes) {
    if (text.starts_with(name)) return {character, name.size()};
  }
  for (const auto& [character, name] : kOldEscapes) {
    if (text.starts_with(name)) return {character, name.size()};
  }
  return {'\0', 0};
}

}  // namespace

MosesTokenizer::MosesTokenizer(MosesOptions options)
    : options_(std::move(options)),
      prefixes_(options_.prefixes ? *options_.prefixes
                                  : NonbreakingPrefixes::of_language(options_.language)) {}

std::string MosesTokenizer::operator()(std::string_view line) const {
  Codes text = with_spaces_round_signs(squeezed(code_points(line)), options_.language);
  const bool northern = options_.language == "fi" || options_.language == "sv";
  if (northern) text = with_spaces_unless_before_small_letter(text, U':');
  if (options_.language == "tdt") text = with_spaces_unless_before_small_letter(text, U'\'');
  if (options_.aggressive_hyphens) text = with_split_hyphens(text);
  text = with_split_commas(with_joined_dots(text));
  split_apostrophes(text);
  std::string tokens = cut_periods(text);
  return options_.escape ? moses_escaped(tokens) : tokens;
}

// Rule 6.
void MosesTokenizer::split_apostrophes(Codes& text) const {
  const auto letter = [](char32_t code) { return is_letter(code); };
  const auto other = [](char32_t code) { return !is_letter(code); };
  const std::string& language = options_.language;
  const bool english = language == "en", within = language == "so" || language == "tdt";
  const bool roman = language == "fr" || language == "it" || language == "ga" || language == "ca";
  if (!english && !roman && !within) {
    Codes out;
    for (char32_t code : text) out += code == U'\'' ? Codes(U" ' ") : Codes(1, code);
    text = std::move(out);
    return;
  }
  const auto before_letter = [&](char32_t code) {
    return !is_letter(code) && !(english && is_number(code));
  };
  replace_apostrophe(text, other, other, U" ' ");
  replace_apostrophe(text, before_letter, letter, U" ' ");
  replace_apostrophe(text, letter, other, U" ' ");
  if (!within) replace_apostrophe(text, letter, letter, english ? U" '" : U"' ");
  const auto number = [](char32_t code) { return is_number(code); };
  const auto s = [](char32_t code) { return code == U's'; };
  if (english) replace_apostrophe(text, number, s, U" '");
}

bool MosesTokenizer::keeps_period(CodesView word, CodesView next) const {
  bool dot = false, letter = false;
  for (char32_t code : word) {
    dot |= code == U'.';
    letter |= is_letter(code);
  }
  if (dot && letter) return true;
  const std::string utf8 = utf8_of(word);
  if (prefixes_.always(utf8)) return true;
  if (next.empty()) return false;
  const bool ordinal = next[0] == 0xAA || next[0] == 0xBA;  // small letters to Perl
  return is_lower(next[0]) || ordinal ||
         (U'0' <= next[0] && next[0] <= U'9' && prefixes_.before_numbers(utf8));
}

// Rule 7, and rule 4's end.
std::string MosesTokenizer::cut_periods(const Codes& text) const {
  const std::vector<CodesView> words = words_between_spaces(text);
  std::string tokens;
  const auto add = [&](CodesView word) {
    if (!tokens.empty()) tokens += ' ';
    for (char32_t code : word) append_utf8(tokens, code == kJoinedDot ? U'.' : code);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    const CodesView word = words[i], stem = word.substr(0, word.size() - 1);
    const bool ends = word.back() == U'.' && !stem.empty();
    const bool independent = last && !options_.keep_last_period;
    if (ends && (independent || !keeps_period(stem, last ? CodesView() : words[i + 1]))) {
      add(stem);
      add(U".");
    } else if (last && word.size() > 1 && word.ends_with(U".'")) {
      if (word.size() > 2) add(word.substr(0, word.size() - 2));
      add(U".");
      add(U"'");
    } else {
      add(word);
    }
  }
  return tokens;
}

std::string moses_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    std::string_view by(&c, 1);
    for (const auto& [character, name] : kEscapes) {
      if (c == character) by = name;
    }
    out += by;
  }
  return out;
}

std::string moses_unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [character, length] =
        text[at] == '&' ? escape_at(text.substr(at)) : std::pair<char, std::size_t>{};
    out += length > 0 ? character : text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace keel::text
