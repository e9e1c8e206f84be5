#include "models/order_embeddings/caption_rows.h"

#include <algorithm>
#include <functional>
#include <set>

#include "frontend/data/row_batches.h"
#include "frontend/data/token_batches.h"
#include "frontend/text/lines.h"
#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint32_t kChosenCaption = stream_of("order_embeddings.captions");
constexpr std::int64_t kLengthMultiple = 4;

enum CaptionInput : std::size_t { kWords, kMask, kImage, kFeatures };

}  // namespace

std::vector<task::Input> caption_inputs(const task::Sizes& sizes, std::int64_t width) {
  const std::int64_t rows = sizes.at(0), length = sizes.at(1);
  return {{"words", {DType::kI32, {length, rows}}, kCaptionEnd},
          {"mask", {DType::kU8, {length, rows}}},
          {"image", {DType::kI32, {rows}}, -1},
          {"features", {DType::kF32, {rows, width}}}};
}

void CaptionRows::add(std::string_view caption, const text::Vocabulary& vocabulary,
                      const std::string& where) {
  std::vector<std::int32_t> numbers;
  for (const std::string_view word : text::words_of(caption)) {
    numbers.push_back(vocabulary.id(word));
  }
  check(std::ssize(numbers) <= kMostWords, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected at most {} words, got {}", where, kMostWords,
        numbers.size());
  numbers.push_back(kCaptionEnd);
  captions_.push_back(std::move(numbers));
}

std::int64_t CaptionRows::caption_of(std::int64_t row, std::optional<std::uint64_t> seed,
                                     std::uint32_t epoch) const {
  if (!seed) return row;
  const Philox chosen(*seed, kChosenCaption, epoch);
  return row * options_.each + chosen.below(std::uint64_t(row), std::uint32_t(options_.each));
}

std::unique_ptr<data::BatchSampler> CaptionRows::plan(const task::StreamOptions& options) const {
  const auto length = [this, seed = options.shuffle](std::uint32_t epoch, std::int64_t row) {
    return length_of(caption_of(row, seed, epoch));
  };
  std::set<std::int64_t, std::greater<>> buckets;
  for (std::int64_t caption = 0; caption < captions(); ++caption) {
    buckets.insert(data::bucket_of(length_of(caption), kLengthMultiple));
  }
  return std::make_unique<data::RowBatches>(
      options.shuffle ? captions() / options_.each : captions(),
      data::RowLengths{.order = length,
                       .padded =
                           [length](std::uint32_t epoch, std::int64_t row) {
                             return task::Sizes{
                                 data::bucket_of(length(epoch, row), kLengthMultiple)};
                           },
                       .all = {{buckets.begin(), buckets.end()}}},
      data::RowBatchOptions{options.batch, options.shuffle, options_.fold * options_.each});
}

std::vector<task::Input> CaptionRows::inputs(const task::Sizes& sizes) const {
  return caption_inputs(sizes, features_.shape()[1]);
}

void CaptionRows::put(task::Batch& batch, const data::RowVisit& visit) const {
  const std::int64_t caption = caption_of(visit.row, visit.seed, visit.epoch);
  const std::int64_t image = caption / options_.each;
  const auto place = std::size_t(visit.place), rows = std::size_t(batch.sizes[0]);
  const std::vector<std::int32_t>& words = captions_[std::size_t(caption)];
  for (std::size_t t = 0; t < words.size(); ++t) {
    batch.values[kWords].as<std::int32_t>()[t * rows + place] = words[t];
    batch.values[kMask].as<std::uint8_t>()[t * rows + place] = 1;
  }
  batch.values[kImage].as<std::int32_t>()[place] = std::int32_t(image);
  if (features_.shape()[0] == 0) return;
  const auto width = std::size_t(features_.shape()[1]);
  std::ranges::copy(features_.as<float>().subspan(std::size_t(image) * width, width),
                    batch.values[kFeatures].as<float>().subspan(place * width).begin());
}

}  // namespace keel::models
