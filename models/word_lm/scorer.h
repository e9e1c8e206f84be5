// The log-probabilities of the words of a text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/task/decoder.h"
#include "frontend/text/vocabulary.h"

namespace keel::models {

inline constexpr std::string_view kWordScores = "scores";  // the network that the scorer asks

// The inputs of that network, for sizes {segments, length}:
//   input  i32 (segments, length)   words
//   at     i32 (segments * length)  place * words + next word: where its log p stands among those
//                                   of all words after all places
// Its prediction is log_p (segments * length, 1).
std::vector<task::Input> score_inputs(const task::Sizes& sizes);

// The lines are one running text, which is cut into segments as evaluation cuts it, so that the sum
// over all words is that of the evaluation. The answer to a line has log p of each of its words and
// of its end, natural logarithms with blanks between them; the first word of the text has "-", for
// nothing stands before it. `ranked` gives each line with its mean and its sum.
class WordScorer final : public task::Decoder {
 public:
  // `first` is the number of the first line in the user's input. Throws Error{kBadInput} with the
  // line for a word that is not in the vocabulary if that has no unknown words.
  WordScorer(const text::Vocabulary& vocabulary, std::int64_t length,
             std::span<const std::string> lines, std::int64_t first);

  std::int64_t size() const override { return std::ssize(lines_); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::vector<std::vector<task::RankedAnswer>> ranked(std::int64_t most) const override;

 private:
  std::int64_t targets() const { return std::ssize(words_) - 1; }
  // The segments of the batch that comes next, and their length.
  task::Sizes next_sizes() const;
  std::size_t end_of(std::size_t line) const;

  std::int64_t length_, words_known_, together_;
  std::vector<std::string> lines_;
  std::vector<std::size_t> begins_;  // of the lines among the words
  std::vector<std::int32_t> words_;
  std::vector<float> log_p_;  // of the words from the second on, as far as they are known
  task::Batch batch_;
};

}  // namespace keel::models
