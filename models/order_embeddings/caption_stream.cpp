#include "models/order_embeddings/caption_stream.h"

#include <algorithm>
#include <set>
#include <utility>

#include "frontend/text/lines.h"
#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint32_t kChosenCaption = stream_of("order_embeddings.captions");
constexpr std::int64_t kLengthMultiple = 4;

enum CaptionInput : std::size_t { kWords, kMask, kImage, kFeatures };

}  // namespace

void NumberedCaptions::add(std::string_view caption, const text::Vocabulary& vocabulary,
                           const std::string& where) {
  std::vector<std::int32_t> row;
  for (const std::string_view word : text::words_of(caption)) row.push_back(vocabulary.id(word));
  check(std::ssize(row) <= kMostWords, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected at most {} words, got {}", where, kMostWords, row.size());
  row.push_back(kCaptionEnd);
  rows.push_back(std::move(row));
}

std::vector<task::Input> caption_inputs(const task::Sizes& sizes, std::int64_t width) {
  const std::int64_t rows = sizes.at(0), length = sizes.at(1);
  return {{"words", {DType::kI32, {length, rows}}},
          {"mask", {DType::kU8, {length, rows}}},
          {"image", {DType::kI32, {rows}}},
          {"features", {DType::kF32, {rows, width}}}};
}

CaptionStream::CaptionStream(data::StreamNotes notes,
                             std::shared_ptr<const NumberedCaptions> captions,
                             const CaptionBatchOptions& options)
    : notes_(std::move(notes)),
      captions_(std::move(captions)),
      options_(options),
      batches_(options.shuffle ? captions_->images() : std::ssize(captions_->rows),
               [this](std::uint32_t epoch, std::int64_t row) {
                 return length_of(caption_of(epoch, row));
               },
               {options.batch, options.shuffle, options.fold * captions_->each}) {}

std::int64_t CaptionStream::caption_of(std::uint32_t epoch, std::int64_t row) const {
  if (!options_.shuffle) return row;
  const Philox chosen(*options_.shuffle, kChosenCaption, epoch);
  const auto each = std::uint32_t(captions_->each);
  return row * captions_->each + chosen.below(std::uint64_t(row), each);
}

double CaptionStream::items(std::uint32_t epoch, std::int64_t step) {
  return double(batches_.at(epoch, step).size());
}

std::vector<task::LeftOut> CaptionStream::left_out() const {
  std::vector<task::LeftOut> left = notes_.left_out;
  const std::int64_t rest = batches_.left_out();
  if (rest > 0) left.push_back({rest, "fill no batch, other ones every epoch"});
  return left;
}

std::vector<task::Sizes> CaptionStream::shapes() const {
  std::set<std::int64_t, std::greater<>> lengths;
  for (std::int64_t caption = 0; caption < std::ssize(captions_->rows); ++caption) {
    lengths.insert(data::bucket_of(length_of(caption), kLengthMultiple));
  }
  std::vector<task::Sizes> shapes;
  for (const std::int64_t length : lengths) shapes.push_back({batches_.capacity(), length});
  return shapes;
}

const task::Batch& CaptionStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(batches_.at(epoch, step), epoch, batches_.capacity());
}

const task::Batch& CaptionStream::pick(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < this->rows(), ErrorKind::kUsage,
          "[order_embeddings] row: expected 0 to {}, got {}", this->rows() - 1, row);
  }
  return make(rows, 0, std::ssize(rows));
}

const task::Batch& CaptionStream::make(std::span<const std::int64_t> rows, std::uint32_t epoch,
                                       std::int64_t capacity) {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) {
    longest = std::max(longest, length_of(caption_of(epoch, row)));
  }
  resize({capacity, data::bucket_of(longest, kLengthMultiple)});
  std::ranges::fill(batch_.values[kWords].as<std::int32_t>(), kCaptionEnd);
  std::ranges::fill(batch_.values[kMask].as<std::uint8_t>(), std::uint8_t{0});
  std::ranges::fill(batch_.values[kImage].as<std::int32_t>(), -1);
  std::ranges::fill(batch_.values[kFeatures].as<float>(), 0.0f);
  for (std::size_t place = 0; place < rows.size(); ++place) {
    put(std::int64_t(place), caption_of(epoch, rows[place]));
  }
  batch_.rows.assign(rows.begin(), rows.end());
  batch_.rows.resize(std::size_t(capacity), -1);
  batch_.items = double(rows.size());
  return batch_;
}

// Gives the batch the sizes; the tensors of the last batch are kept where they fit.
void CaptionStream::resize(const task::Sizes& sizes) {
  if (batch_.sizes == sizes) return;
  batch_.sizes = sizes;
  batch_.values.clear();
  for (const task::Input& input : caption_inputs(sizes, captions_->features.shape()[1])) {
    batch_.values.emplace_back(input.type);
  }
}

void CaptionStream::put(std::int64_t place, std::int64_t caption) {
  const std::int64_t image = caption / captions_->each, rows = batch_.sizes[0];
  const std::vector<std::int32_t>& words = captions_->rows[std::size_t(caption)];
  for (std::size_t t = 0; t < words.size(); ++t) {
    const std::size_t at = t * std::size_t(rows) + std::size_t(place);
    batch_.values[kWords].as<std::int32_t>()[at] = words[t];
    batch_.values[kMask].as<std::uint8_t>()[at] = 1;
  }
  batch_.values[kImage].as<std::int32_t>()[std::size_t(place)] = std::int32_t(image);
  if (captions_->features.shape()[0] == 0) return;
  const auto width = std::size_t(captions_->features.shape()[1]);
  std::ranges::copy(
      captions_->features.as<float>().subspan(std::size_t(image) * width, width),
      batch_.values[kFeatures].as<float>().subspan(std::size_t(place) * width).begin());
}

}  // namespace keel::models
