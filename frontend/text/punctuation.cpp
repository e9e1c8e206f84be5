#include "frontend/text/punctuation.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "frontend/text/unicode.h"

namespace keel::text {
namespace {

using Rule = std::pair<std::u32string_view, std::u32string_view>;

constexpr std::array<Rule, 3> kBlanksAtBrackets = {{{U"\r", U""}, {U"(", U" ("}, {U")", U") "}}};
constexpr std::array<Rule, 2> kBlanksInBrackets = {{{U"( ", U"("}, {U" )", U")"}}};
constexpr std::array<Rule, 4> kBlanksAtSigns = {
    {{U" :", U":"}, {U" ;", U";"}, {U"`", U"'"}, {U"''", U" \" "}}};
constexpr std::array<Rule, 5> kDoubleQuotes = {{{U"\u201E", U"\""},
                                                {U"\u201C", U"\""},
                                                {U"\u201D", U"\""},
                                                {U"\u2013", U"-"},
                                                {U"\u2014", U" - "}}};
constexpr std::array<Rule, 6> kSingleQuotes = {{{U"\u2018", U"'"},
                                                {U"\u201A", U"'"},
                                                {U"\u2019", U"\""},
                                                {U"''", U"\""},
                                                {U"\u00B4\u00B4", U"\""},
                                                {U"\u2026", U"..."}}};
constexpr std::array<Rule, 15> kNoBreakBlanks = {{{U"\u00A0\u00AB\u00A0", U" \""},
                                                  {U"\u00AB\u00A0", U"\""},
                                                  {U"\u00AB", U"\""},
                                                  {U"\u00A0\u00BB\u00A0", U"\" "},
                                                  {U"\u00A0\u00BB", U"\""},
                                                  {U"\u00BB", U"\""},
                                                  {U"\u00A0%", U"%"},
                                                  {U"n\u00BA\u00A0", U"n\u00BA "},
                                                  {U"\u00A0:", U":"},
                                                  {U"\u00A0\u00BAC", U" \u00BAC"},
                                                  {U"\u00A0cm", U" cm"},
                                                  {U"\u00A0?", U"?"},
                                                  {U"\u00A0!", U"!"},
                                                  {U"\u00A0;", U";"},
                                                  {U",\u00A0", U", "}}};

std::u32string with_replaced(std::u32string_view text, const Rule& rule) {
  std::u32string out;
  while (true) {
    const std::size_t at = text.find(rule.first);
    out += text.substr(0, at);
    if (at == std::u32string_view::npos) return out;
    out += rule.second;
    text.remove_prefix(at + rule.first.size());
  }
}

void apply_rules(std::u32string& text, std::span<const Rule> rules) {
  for (const Rule& rule : rules) text = with_replaced(text, rule);
}

void squeeze_blanks(std::u32string& text) {
  std::u32string out;
  for (char32_t code : text) {
    if (code != U' ' || !out.ends_with(U' ')) out += code;
  }
  text = std::move(out);
}

// Replaces what stands between two characters of the given kinds, from left to right; characters
// that were matched are not looked at again.
template <class Left, class Right>
void replace_between(std::u32string& text, const Rule& rule, Left left, Right right) {
  const std::size_t length = rule.first.size();
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool here = i + length + 1 < text.size() && left(text[i]) &&
                      text.compare(i + 1, length, rule.first) == 0 && right(text[i + 1 + length]);
    out += text[i];
    i += 1;
    if (!here) continue;
    out += rule.second;
    out += text[i + length];
    i += length + 1;
  }
  text = std::move(out);
}

bool is_basic_letter(char32_t code) { return code < 0x80 && is_letter(code); }
bool is_basic_digit(char32_t code) { return code < 0x80 && is_digit(code); }
bool is_basic_space(char32_t code) { return code < 0x80 && is_space(code); }

// "(\d) %" and ") ." without their blanks.
void join_signs(std::u32string& text) {
  const auto closes_bracket = [](char32_t code) { return code == U')'; };
  const auto ends_phrase = [](char32_t code) {
    return std::u32string_view(U".!:?;,").find(code) != std::u32string_view::npos;
  };
  replace_between(text, {U" ", U""}, closes_bracket, ends_phrase);
  apply_rules(text, kBlanksInBrackets);
  replace_between(text, {U" ", U""}, is_basic_digit, [](char32_t code) { return code == U'%'; });
}

// Moves a quote after the commas and full stops that follow it.
std::u32string with_stops_before_quotes(std::u32string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end =
        text[i] == U'"' ? std::min(text.find_first_not_of(U",.", i + 1), text.size()) : i;
    if (end > i + 1) {
      (out += text.substr(i + 1, end - i - 1)) += U'"';
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Moves a quote before a comma, or before full stops, but not where a tag begins after it.
std::u32string with_quotes_before_stops(std::u32string_view text) {
  const std::u32string commas = with_replaced(text, {U",\"", U"\","});
  text = commas;
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t quote = std::min(text.find_first_not_of(U'.', i), text.size());
    const bool here = quote > i && quote < text.size() && text[quote] == U'"' &&
                      !text.substr(quote + 1).starts_with(U'<');
    if (!here) {
      // All of a run of full stops at once: what stands after it is the same for each of them.
      const std::size_t end = std::max(quote, i + 1);
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    // Blanks after the quote, and the character after them, belong to what was matched.
    std::size_t end = quote + 1;
    while (end < text.size() && is_basic_space(text[end])) ++end;
    if (end < text.size() && text[end] != U'<') ++end;
    ((out += U'"') += text.substr(i, quote - i)) += text.substr(quote + 1, end - quote - 1);
    i = end;
  }
  return out;
}

}  // namespace

std::string normalized_punctuation(std::string_view line, std::string_view language) {
  std::u32string text = code_points(line);
  apply_rules(text, kBlanksAtBrackets);
  squeeze_blanks(text);
  join_signs(text);
  apply_rules(text, kBlanksAtSigns);
  apply_rules(text, kDoubleQuotes);
  squeeze_blanks(text);
  text = with_replaced(text, {U"\u00B4", U"'"});
  replace_between(text, {U"\u2018", U"'"}, is_basic_letter, is_basic_letter);
  replace_between(text, {U"\u2019", U"'"}, is_basic_letter, is_basic_letter);
  apply_rules(text, kSingleQuotes);
  apply_rules(text, kNoBreakBlanks);
  squeeze_blanks(text);
  const bool czech = language == "cs" || language == "cz";
  if (language == "en") {
    text = with_stops_before_quotes(text);
  } else if (!czech) {
    text = with_quotes_before_stops(text);
  }
  const bool comma = czech || language == "de" || language == "es" || language == "fr";
  replace_between(text, {U"\u00A0", comma ? U"," : U"."}, is_basic_digit, is_basic_digit);
  return utf8_of(text);
}

std::string with_printable_characters(std::string_view line) {
  std::string out;
  for (char32_t code : code_points(line)) {
    append_utf8(out, is_printable(code) ? code : U' ');
  }
  return out;
}

}  // namespace keel::text
