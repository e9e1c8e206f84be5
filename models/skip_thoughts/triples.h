// Sentences with their two neighbours, as batches.
#pragma once

#include <memory>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/task/batch.h"
#include "frontend/text/dictionary.h"
#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// Sentences as numbers, text::Dictionary::kEnd after each.
using Numbers = std::vector<std::int32_t>;

struct NumberedText {
  std::vector<Numbers> sentences;
  // The sentences that have both neighbours in their passage, if all three have at most
  // `most_words` words. Each is a row of the split.
  std::vector<std::int64_t> rows;
  std::int64_t dropped = 0;  // sentences left out because one of the three is too long
};
NumberedText number_text(const std::vector<Passage>& passages, const text::Dictionary& dictionary,
                         std::int64_t most_words);

// The label of a place that has no word.
inline constexpr std::int32_t kNoWord = -1;

// Sizes are {rows, length, neighbour length}; the values of a batch, time-major, in this order:
//   words         i32 (length, rows)   a sentence's numbers along the first axis, kEnd, then kPad
//   mask          u8 (length, rows)    1 where there is a number
//   before_in     i32 (neighbour length, rows)   of the sentence before: kPad, then its numbers
//                                                without kEnd, then kPad
//   before_out    i32 (neighbour length, rows)   its numbers with kEnd, then kNoWord
//   before_mask   u8 (neighbour length, rows)    1 where before_out has a number
//   after_in, after_out, after_mask              of the sentence after
// items is the number of words to predict: those of both neighbours with their ends.
enum TripleInput : std::size_t {
  kWords,
  kMask,
  kBeforeIn,
  kBeforeOut,
  kBeforeMask,
  kAfterIn,
  kAfterOut,
  kAfterMask
};
std::vector<task::Input> triple_inputs(const task::Sizes& sizes);

// Puts a sentence into a place; it must fit.
void put_sentence(task::Batch& batch, std::int64_t place, const Numbers& sentence);

// Numbered text in data::RowBatches of similar lengths: nearly every batch has sentences of one
// length, as in the release of Kiros et al. 2015, and masks cover the differences.
class TripleRows final : public data::Dataset {
 public:
  TripleRows(data::SplitNotes notes, NumberedText text)
      : Dataset(std::move(notes)), text_(std::move(text)) {}

  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return triple_inputs(sizes);
  }
  void put(task::Batch& batch, const data::RowVisit& visit) const override;
  double items(std::int64_t row) const override {
    return double(sentence(row, -1).size() + sentence(row, 1).size());
  }

 private:
  // The sentence `shift` after that of a row.
  const Numbers& sentence(std::int64_t row, std::int64_t shift = 0) const {
    return text_.sentences[std::size_t(text_.rows[std::size_t(row)] + shift)];
  }
  // The buckets of a sentence and of its longer neighbour.
  task::Sizes lengths_of(std::int64_t row) const;

  NumberedText text_;
};

}  // namespace keel::models
