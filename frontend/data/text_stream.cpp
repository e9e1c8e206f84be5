#include "frontend/data/text_stream.h"

#include <algorithm>
#include <utility>

#include "frontend/text/vocabulary.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

using text::Vocabulary;

constexpr std::int32_t kNoLabel = -1;
enum Value : std::size_t { kTokens, kMask, kLabel };

}  // namespace

void LabelledRows::add(std::span<const std::int32_t> tokens, std::int32_t label) {
  check(label > kNoLabel, ErrorKind::kUsage, "[labelled_rows] label: expected 0 or more, got {}",
        label);
  for (std::int32_t token : tokens) {
    check(token > Vocabulary::kPad, ErrorKind::kUsage,
          "[labelled_rows] token: expected 1 or more, got {}", token);
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  if (tokens.empty()) tokens_.push_back(Vocabulary::kUnk);
  begins_.push_back(tokens_.size());
  labels_.push_back(label);
}

std::span<const std::int32_t> LabelledRows::tokens(std::int64_t row) const {
  const auto at = static_cast<std::size_t>(row);
  return std::span(tokens_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
}

std::vector<std::int64_t> LabelledRows::lengths() const {
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < size(); ++row) lengths.push_back(std::ssize(tokens(row)));
  return lengths;
}

TextStream::TextStream(StreamNotes notes, LabelledRows rows, const TokenBatchOptions& options)
    : notes_(std::move(notes)),
      rows_(std::move(rows)),
      batches_(rows_.lengths(), options),
      options_(options) {}

double TextStream::items(std::uint32_t epoch, std::int64_t step) {
  return static_cast<double>(batches_.at(epoch, step).rows.size());
}

std::vector<task::Sizes> TextStream::shapes() const {
  std::vector<task::Sizes> shapes;
  for (const TokenBatches::Size& size : batches_.sizes()) {
    shapes.push_back({size.capacity, size.length});
  }
  return shapes;
}

const task::Batch& TextStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(batches_.at(epoch, step));
}

const task::Batch& TextStream::pick(std::span<const std::int64_t> rows) {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < rows_.size(), ErrorKind::kUsage,
          "[text_stream] row: expected 0 to {}, got {}", rows_.size() - 1, row);
    longest = std::max(longest, std::int64_t(std::ssize(rows_.tokens(row))));
  }
  return make({.capacity = std::ssize(rows),
               .length = bucket_of(longest, options_.multiple),
               .rows = rows});
}

const task::Batch& TextStream::make(const TokenBatch& planned) {
  resize(planned);
  std::ranges::fill(batch_.values[kTokens].as<std::int32_t>(), Vocabulary::kPad);
  std::ranges::fill(batch_.values[kMask].as<std::uint8_t>(), std::uint8_t{0});
  std::ranges::fill(batch_.values[kLabel].as<std::int32_t>(), kNoLabel);
  for (std::size_t place = 0; place < planned.rows.size(); ++place) {
    fill(place, planned.rows[place]);
  }
  batch_.rows.assign(planned.rows.begin(), planned.rows.end());
  batch_.rows.resize(static_cast<std::size_t>(planned.capacity), -1);
  batch_.items = static_cast<double>(planned.rows.size());
  return batch_;
}

// Gives the batch the planned shape; the tensors of the last batch are kept where they fit.
void TextStream::resize(const TokenBatch& planned) {
  task::Sizes sizes{planned.capacity, planned.length};
  if (batch_.sizes == sizes) return;
  batch_.sizes = std::move(sizes);
  batch_.values.clear();
  batch_.values.emplace_back(DType::kI32, Shape{planned.capacity, planned.length});
  batch_.values.emplace_back(DType::kU8, Shape{planned.capacity, planned.length});
  batch_.values.emplace_back(DType::kI32, Shape{planned.capacity});
}

void TextStream::fill(std::size_t place, std::int64_t row) {
  const std::span<const std::int32_t> tokens = rows_.tokens(row);
  const std::size_t first = place * static_cast<std::size_t>(batch_.sizes[1]);
  std::ranges::copy(tokens, batch_.values[kTokens].as<std::int32_t>().subspan(first).begin());
  std::ranges::fill(batch_.values[kMask].as<std::uint8_t>().subspan(first, tokens.size()),
                    std::uint8_t{1});
  batch_.values[kLabel].as<std::int32_t>()[place] = rows_.label(row);
}

}  // namespace keel::data
