#include "frontend/io/plot_text.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace keel::io {
namespace {

bool is_within_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// How many of the first `most` bytes of a word are whole characters, at least one character.
std::size_t cut_of(std::string_view word, std::size_t most) {
  std::size_t cut = std::max<std::size_t>(most, 1);
  while (cut > 1 && is_within_character(word[cut])) --cut;
  while (cut < word.size() && is_within_character(word[cut])) ++cut;
  return cut;
}

std::string in_capitals(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

bool is_abbreviation(const std::string& word) {
  static const std::vector<std::string> known{"bleu", "bpc", "kl", "las", "nll", "sse", "uas"};
  return std::ranges::find(known, word) != known.end();
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const bool fits = !lines.empty() && lines.back().size() + 1 + word.size() <= columns;
    if (fits) {
      lines.back().append(" ").append(word);
      continue;
    }
    for (; word.size() > columns; word.remove_prefix(cut_of(word, columns))) {
      lines.emplace_back(word.substr(0, cut_of(word, columns)));
    }
    if (!word.empty()) lines.emplace_back(word);
  }
  return lines;
}

std::string words_of_quantity(const std::string& name) {
  static const std::map<std::string, std::string> known{
      {"lr", "learning rate"}, {"grad_norm", "gradient norm"}, {"items_per_second", "items/s"}};
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::string result;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    const std::string word = name.substr(at, end - at);
    if (!result.empty()) result += ' ';
    result += is_abbreviation(word) ? in_capitals(word) : word;
    at = end + 1;
  }
  return result;
}

}  // namespace keel::io
