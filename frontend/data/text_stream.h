// Sentences with a label each, as batches of a few fixed shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/data/token_batches.h"
#include "frontend/task/batch.h"

namespace keel::data {

// Rows of word numbers, one behind the other, with a label each.
class LabelledRows {
 public:
  // A row without a word becomes the one word Vocabulary::kUnk: a mean over its words then exists,
  // and the row is counted like every other. Throws Error{kUsage} for a number below 1, which is
  // padding, and for a negative label, which is that of padding rows.
  void add(std::span<const std::int32_t> tokens, std::int32_t label);

  std::int64_t size() const { return std::ssize(labels_); }
  std::span<const std::int32_t> tokens(std::int64_t row) const;
  std::int32_t label(std::int64_t row) const { return labels_[static_cast<std::size_t>(row)]; }
  std::vector<std::int64_t> lengths() const;

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> begins_{0};  // and where the last row ends
  std::vector<std::int32_t> labels_;
};

// What a split is called, and what it leaves out.
struct StreamNotes {
  std::string source;
  std::vector<task::LeftOut> left_out;
};

// The batches that TokenBatches plans. sizes are {rows, length}; the values, in this order:
//   tokens  i32 (rows, length)   numbers of the words from the left, then 0
//   mask    u8 (rows, length)    1 where there is a word
//   label   i32 (rows)           -1 for a row of padding
// items is the number of sentences, by which a loss that is summed over them is divided.
class TextStream final : public task::Stream {
 public:
  // Throws Error{kUsage} as TokenBatches.
  TextStream(StreamNotes notes, LabelledRows rows, const TokenBatchOptions& options);

  const std::string& source() const override { return notes_.source; }
  std::int64_t rows() const override { return rows_.size(); }
  std::int64_t steps(std::uint32_t epoch) override { return batches_.steps(epoch); }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override { return notes_.left_out; }

  // The share of an epoch's positions that hold no word.
  double padding(std::uint32_t epoch) { return batches_.padding(epoch); }

 private:
  void resize(const TokenBatch& planned);
  void fill(std::size_t place, std::int64_t row);
  const task::Batch& make(const TokenBatch& planned);

  StreamNotes notes_;
  LabelledRows rows_;
  TokenBatches batches_;
  TokenBatchOptions options_;
  task::Batch batch_;
};

}  // namespace keel::data
