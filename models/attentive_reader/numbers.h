// Questions whose tokens are numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/text/vocabulary.h"
#include "models/attentive_reader/question.h"
#include "src/core/rng.h"

namespace keel::models {

// Number 0 is padding, 1 is every unknown word, and words follow. The last numbers are for entities
// and mean nothing by themselves: every time a question is read, its entities get freshly drawn
// numbers.
class ReaderNumbers {
 public:
  static constexpr std::string_view kWordsAsset = "vocabulary", kEntitiesAsset = "entities";

  // Made from the training questions. Words that occur less often than the `max_words` most
  // frequent are unknown; 0: none is. Entities get as many numbers as the largest @entityN needs.
  ReaderNumbers(const std::vector<Question>& questions, std::int64_t max_words);
  // Reads texts() back. Throws Error{kBadInput} naming the text that is missing or damaged.
  static ReaderNumbers parse(const std::map<std::string, std::string>& texts);
  std::map<std::string, std::string> texts() const;

  std::int32_t words() const { return vocabulary_.size(); }
  std::int32_t entities() const { return entities_; }
  std::int32_t size() const { return words() + entities_; }
  const text::Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  ReaderNumbers(text::Vocabulary vocabulary, std::int32_t entities)
      : vocabulary_(std::move(vocabulary)), entities_(entities) {}

  text::Vocabulary vocabulary_;
  std::int32_t entities_;
};

// A token is the number of a word, or -1 - i for the question's i-th entity, counted in the order
// of first occurrence in passage, question, answer.
struct NumberedQuestion {
  std::vector<std::int32_t> passage, question;
  std::int32_t answer = 0;  // text::Vocabulary::kPad: a word without a number, which no answer is
  std::vector<std::string> entities;  // as the question calls them
};

// An absent answer also gets kPad.
NumberedQuestion numbered_question(const Question& question, const ReaderNumbers& numbers);

// The numbers of a question's `count` entities, among those of ReaderNumbers: all different, and
// drawn only by (seed, epoch, row). If there are more entities than numbers, some share one.
std::vector<std::int32_t> drawn_entities(std::int64_t count, const ReaderNumbers& numbers,
                                         const Philox& random, std::int64_t row);

}  // namespace keel::models
