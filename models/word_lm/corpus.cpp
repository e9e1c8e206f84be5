#include "models/word_lm/corpus.h"

#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// Calls take(word, line number) for every word of the first `lines` lines, ends included.
template <class Take>
void each_token(const LineSource& source, std::int64_t lines, const Take& take) {
  source.read([&](const text::Line& line) {
    if (lines > 0 && line.number > lines) return;
    text::each_word(line.text, [&](std::string_view word) { take(word, line.number); });
    take(kEndOfLine, line.number);
  });
}

}  // namespace

text::WordCounts count_words(const LineSource& source, std::int64_t lines) {
  text::WordCounts counts;
  each_token(source, lines, [&](std::string_view word, std::int64_t) {
    const auto found = counts.find(word);
    if (found == counts.end()) {
      counts.emplace(word, 1);
    } else {
      ++found->second;
    }
  });
  check(!counts.empty(), ErrorKind::kBadInput, "[word_lm] {}: expected lines of text, got none",
        source.name);
  return counts;
}

std::vector<std::int32_t> number_words(const LineSource& source, std::int64_t lines,
                                       const text::Vocabulary& vocabulary) {
  std::vector<std::int32_t> numbers;
  const bool takes_unknown = knows_unknown(vocabulary);
  each_token(source, lines, [&](std::string_view word, std::int64_t line) {
    const std::int32_t number = number_of(vocabulary, word);
    check(number > 0 || takes_unknown, ErrorKind::kBadInput,
          "[word_lm] {}: expected one of the {} words of the training text, which has no <unk>, "
          "got '{}' (a training with model.min_count=2 makes rare words <unk>)",
          text::place(source.name, line), count_of_numbers(vocabulary) - 1,
          text::clipped(word, 40));
    numbers.push_back(number);
  });
  return numbers;
}

}  // namespace keel::models
