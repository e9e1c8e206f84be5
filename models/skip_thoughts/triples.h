// Sentences with the one before and the one behind, as batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/data/row_batches.h"
#include "frontend/data/text_stream.h"
#include "frontend/text/dictionary.h"
#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// Sentences as numbers, text::Dictionary::kEnd behind each.
using Numbers = std::vector<std::int32_t>;

struct NumberedText {
  std::vector<Numbers> sentences;
  // Those that have one before and one behind them in their passage, all three of at most so many
  // words; a row of the split is one of these.
  std::vector<std::int64_t> rows;
  std::int64_t dropped = 0;  // sentences with neighbours where one of the three is too long
};
NumberedText number_text(const std::vector<Passage>& passages, const text::Dictionary& dictionary,
                         std::int64_t most_words);

// The label of a place that has no word.
inline constexpr std::int32_t kNoWord = -1;

// Sizes are {rows, length, neighbour length}; the values of a batch, time-major, in this order:
//   words         i32 (length, rows)   a sentence's numbers from the top with kEnd, then kPad
//   mask          u8 (length, rows)    1 where there is a number
//   before_in     i32 (neighbour length, rows)   of the sentence before: kPad, then its numbers
//                                                without kEnd, then kPad
//   before_out    i32 (neighbour length, rows)   its numbers with kEnd, then kNoWord
//   before_mask   u8 (neighbour length, rows)    1 where before_out has a number
//   after_in, after_out, after_mask              of the sentence behind
// items is the number of words to say, those of both neighbours with their ends.
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

// Makes a batch one of these sizes with nothing but padding in it; tensors that fit are kept.
void clear_triples(task::Batch& batch, const task::Sizes& sizes);
// Puts a sentence into a place; it must fit.
void put_sentence(task::Batch& batch, std::int64_t place, const Numbers& sentence);

struct TripleOptions {
  std::int64_t batch = 64;
  std::optional<std::uint64_t> shuffle = std::nullopt;  // the seed, in training
};

// Batches of rows of like lengths (data::RowBatches): nearly all have sentences of one length, as
// the release of Kiros et al. 2015 has it, and masks make up for the rest.
class TripleStream final : public task::Stream {
 public:
  // Throws Error{kUsage} as data::RowBatches.
  TripleStream(data::StreamNotes notes, std::shared_ptr<const NumberedText> text,
               const TripleOptions& options);
  TripleStream(const TripleStream&) = delete;  // its plan asks it for lengths

  const std::string& source() const override { return notes_.source; }
  std::int64_t rows() const override { return batches_.rows(); }
  std::int64_t steps(std::uint32_t) override { return batches_.steps(); }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override;

 private:
  // The sentence `shift` behind that of a row.
  const Numbers& sentence(std::int64_t row, std::int64_t shift = 0) const {
    return text_->sentences[std::size_t(text_->rows[std::size_t(row)] + shift)];
  }
  std::int64_t neighbour_length(std::int64_t row) const {
    return std::int64_t(std::max(sentence(row, -1).size(), sentence(row, 1).size()));
  }
  const task::Batch& make(std::span<const std::int64_t> rows, std::int64_t capacity);

  data::StreamNotes notes_;
  std::shared_ptr<const NumberedText> text_;
  data::RowBatches batches_;
  task::Batch batch_;
};

}  // namespace keel::models
