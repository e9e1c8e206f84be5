#include "frontend/text/lines.h"

#include <algorithm>

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
  const auto end = line.end();
  for (auto at = line.begin(); at != end;) {
    const auto first = std::find_if_not(at, end, is_blank);
    at = std::find_if(first, end, is_blank);
    if (first != at) words.emplace_back(first, at);
  }
  return words;
}

}  // namespace keel::text
