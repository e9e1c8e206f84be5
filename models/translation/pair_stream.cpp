#include "models/translation/pair_stream.h"

#include <algorithm>
#include <utility>

#include "frontend/data/token_batches.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

data::PairLength length_of_pair(const NumberedPair& pair) {
  return {std::ssize(pair.source), std::ssize(pair.target)};
}

std::vector<data::PairLength> lengths_of(const NumberedPairs& pairs) {
  std::vector<data::PairLength> lengths;
  for (const NumberedPair& pair : pairs) lengths.push_back(length_of_pair(pair));
  return lengths;
}

}  // namespace

PairStream::PairStream(data::StreamNotes notes, std::shared_ptr<const NumberedPairs> pairs,
                       const data::PairBatchOptions& options)
    : notes_(std::move(notes)),
      pairs_(std::move(pairs)),
      options_(options),
      batches_(lengths_of(*pairs_), options) {}

double PairStream::items(std::uint32_t epoch, std::int64_t step) {
  std::int64_t tokens = 0;
  for (std::int64_t row : batches_.at(epoch, step).rows) tokens += std::ssize(pair(row).target);
  return static_cast<double>(tokens);
}

std::vector<task::Sizes> PairStream::shapes() const {
  std::vector<task::Sizes> shapes;
  for (const data::PairBatches::Shape& shape : batches_.shapes()) {
    shapes.push_back({shape.capacity, shape.length.source, shape.length.target});
  }
  return shapes;
}

const task::Batch& PairStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(batches_.at(epoch, step));
}

const task::Batch& PairStream::pick(std::span<const std::int64_t> rows) {
  data::PairLength longest{1, 1};
  for (std::int64_t row : rows) {
    check(row >= 0 && row < this->rows(), ErrorKind::kUsage,
          "[pair_stream] row: expected 0 to {}, got {}", this->rows() - 1, row);
    const data::PairLength length = length_of_pair(pair(row));
    longest = {std::max(longest.source, length.source), std::max(longest.target, length.target)};
  }
  const data::PairLength bucket{data::bucket_of(longest.source, options_.multiple),
                                data::bucket_of(longest.target, options_.multiple)};
  return make({.capacity = std::ssize(rows), .length = bucket, .rows = rows});
}

const task::Batch& PairStream::make(const data::PairBatch& planned) {
  clear_pairs(batch_, {planned.capacity, planned.length.source, planned.length.target});
  batch_.items = 0;
  for (std::size_t place = 0; place < planned.rows.size(); ++place) {
    const NumberedPair& row = pair(planned.rows[place]);
    put_pair(batch_, place, row);
    batch_.items += static_cast<double>(row.target.size());
  }
  batch_.rows.assign(planned.rows.begin(), planned.rows.end());
  batch_.rows.resize(static_cast<std::size_t>(planned.capacity), -1);
  return batch_;
}

}  // namespace keel::models
