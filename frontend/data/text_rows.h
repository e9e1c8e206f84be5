// Sentences with a label each, as batches of a few fixed shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/data/data_loader.h"

namespace keel::data {

// Rows of word numbers with a label each, in TokenBatches. Sizes are {rows, length}; the values of
// a batch are, in this order:
//   tokens  i32 (rows, length)   numbers of the words from the left, then 0
//   mask    u8 (rows, length)    1 where there is a word
//   label   i32 (rows)           -1 for a row of padding
class TextRows final : public Dataset {
 public:
  explicit TextRows(SplitNotes notes) : Dataset(std::move(notes)) {}

  // A row without words becomes the one word Vocabulary::kUnk, so that a mean over its words exists
  // and the row is counted like every other. Throws Error{kUsage} for a number below 1, because 0
  // is padding, and for a negative label, because padding rows have one.
  void add(std::span<const std::int32_t> tokens, std::int32_t label);

  std::int64_t size() const { return std::ssize(labels_); }
  std::span<const std::int32_t> tokens(std::int64_t row) const;
  std::int32_t label(std::int64_t row) const { return labels_[static_cast<std::size_t>(row)]; }

  std::unique_ptr<BatchSampler> plan(const StreamOptions& options) const override;
  std::vector<Input> inputs(const Sizes& sizes) const override;
  void put(Batch& batch, const RowVisit& visit) const override;

 private:
  std::vector<std::int32_t> tokens_;    // of all rows, one after the other
  std::vector<std::size_t> begins_{0};  // and the end of the last row
  std::vector<std::int32_t> labels_;
};

std::vector<Input> text_inputs(const Sizes& sizes);

}  // namespace keel::data
