// Captions and the features of their images as batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/task/batch.h"
#include "frontend/text/vocabulary.h"
#include "models/order_embeddings/corpus.h"

namespace keel::models {

// Number 0 ends a caption and fills the places after its end; number 1 is every unknown word.
// text::Vocabulary gives these numbers to padding and to unknown words.
inline constexpr std::int32_t kCaptionEnd = text::Vocabulary::kPad;

// The words of captions and the features of their images, in data::RowBatches: sizes are
// {rows, length}, and the values of a batch, in this order:
//   words     i32 (length, rows)   a caption's numbers along the first axis, then kCaptionEnd
//   mask      u8 (length, rows)    1 up to and including a caption's first kCaptionEnd
//   image     i32 (rows)           the number of the image, -1 in a row of padding
//   features  f32 (rows, width)    of the image
// Lengths are buckets (data::bucket_of, multiples of 4).
//
// In training a row of the split is an image. An epoch has every image once, with one of its
// captions drawn by (seed, epoch, image), except for those after the last whole batch, which differ
// in every epoch. The others are sorted by length and cut into batches, whose order is drawn. In
// evaluation a row is a caption. Folds of `fold` images follow each other, so that a ranking needs
// to keep only one fold; the captions of a fold are sorted by length, and rows of padding fill its
// last batch.
class CaptionRows final : public data::Dataset {
 public:
  struct Options {
    std::int64_t each = kCaptionsAnImage;  // captions of an image, in consecutive rows
    std::int64_t fold = 1000;              // images
  };
  // Features are f32 (images, width), or (0, width): zeros.
  CaptionRows(data::SplitNotes notes, Tensor features, const Options& options)
      : Dataset(std::move(notes)), features_(std::move(features)), options_(options) {}

  // Adds the numbers of a caption's words and then kCaptionEnd. Throws Error{kBadInput} that begins
  // with `where` for more than kMostWords words, because the network is as long as the caption.
  void add(std::string_view caption, const text::Vocabulary& vocabulary, const std::string& where);
  static constexpr std::int64_t kMostWords = 200;

  std::int64_t captions() const { return std::ssize(captions_); }

  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  void put(task::Batch& batch, const data::RowVisit& visit) const override;

 private:
  std::int64_t length_of(std::int64_t caption) const {
    return std::ssize(captions_[std::size_t(caption)]);
  }
  // The caption of a row of the split.
  std::int64_t caption_of(std::int64_t row, std::optional<std::uint64_t> seed,
                          std::uint32_t epoch) const;

  Tensor features_;
  Options options_;
  std::vector<std::vector<std::int32_t>> captions_;
};

// The inputs of a batch of captions, for images with features of this width.
std::vector<task::Input> caption_inputs(const task::Sizes& sizes, std::int64_t width);

}  // namespace keel::models
