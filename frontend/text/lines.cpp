#include "frontend/text/lines.h"

namespace keel::text {

std::optional<Line> Lines::next() {
  if (rest_.empty()) return std::nullopt;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  while (line.ends_with('\r')) line.remove_suffix(1);
  return Line{line, ++number_};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  each_word(line, [&](std::string_view word) { words.push_back(word); });
  return words;
}

}  // namespace keel::text
