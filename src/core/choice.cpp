#include "src/core/choice.h"

#include <algorithm>

#include "src/core/choice_list.h"
#include "src/core/error.h"

namespace keel {

std::string choice_list(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " or ";
    text += words[i];
  }
  return text;
}

std::size_t choice_index(std::string_view text, std::span<const std::string_view> words) {
  const auto found = std::ranges::find(words, text);
  check(found != words.end(), ErrorKind::kUsage, "expected {}, got '{}'", choice_list(words), text);
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace keel
