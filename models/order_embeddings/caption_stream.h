// Captions and the features of their images as batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/row_batches.h"
#include "frontend/data/text_stream.h"
#include "frontend/text/vocabulary.h"
#include "models/order_embeddings/corpus.h"

namespace keel::models {

// Number 0 ends a caption and is what stands behind its end, number 1 is every unknown word: those
// that text::Vocabulary gives to padding and to unknown words.
inline constexpr std::int32_t kCaptionEnd = text::Vocabulary::kPad;

struct NumberedCaptions {
  // Adds the numbers of a caption's words and kCaptionEnd behind them. Throws Error{kBadInput} that
  // begins with `where` for more than kMostWords words: the network is as long as the caption.
  void add(std::string_view caption, const text::Vocabulary& vocabulary, const std::string& where);
  static constexpr std::int64_t kMostWords = 200;

  Tensor features;                              // f32 (images, width), or (0, width): zeros
  std::int64_t each = kCaptionsAnImage;         // captions in a row that an image has
  std::vector<std::vector<std::int32_t>> rows;  // of captions

  std::int64_t images() const { return std::ssize(rows) / each; }
};

struct CaptionBatchOptions {
  std::int64_t batch = 128;
  std::optional<std::uint64_t> shuffle = std::nullopt;  // the seed, in training
  std::int64_t fold = 1000;                             // images
};

// Sizes are {rows, length}; the values of a batch, in this order:
//   words     i32 (length, rows)   a caption's numbers from the top, then kCaptionEnd
//   mask      u8 (length, rows)    1 down to a caption's first kCaptionEnd
//   image     i32 (rows)           the number of the image, -1 in a row of padding
//   features  f32 (rows, width)    of the image
// Lengths are buckets (data::bucket_of, multiples of 4).
//
// Training: a row of the split is an image. An epoch has every image once, with one of its captions
// that is drawn by (seed, epoch, image), but for those behind the last whole batch, other ones
// every epoch. The rows that stay are sorted by length and cut, and the batches are put in a drawn
// order. Else a row is a caption. Folds of so many images come one behind the other, so that
// whoever ranks a fold need not keep more than one; the captions of a fold are sorted by length,
// and its last batch is filled up with rows of padding.
class CaptionStream final : public task::Stream {
 public:
  // Throws Error{kUsage} as data::RowBatches.
  CaptionStream(data::StreamNotes notes, std::shared_ptr<const NumberedCaptions> captions,
                const CaptionBatchOptions& options);
  CaptionStream(const CaptionStream&) = delete;  // its plan asks it for lengths

  const std::string& source() const override { return notes_.source; }
  std::int64_t rows() const override { return batches_.rows(); }
  std::int64_t steps(std::uint32_t) override { return batches_.steps(); }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  // In training the images with their captions of epoch 0.
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override;

 private:
  // The caption that a row of the split stands for in an epoch.
  std::int64_t caption_of(std::uint32_t epoch, std::int64_t row) const;
  std::int64_t length_of(std::int64_t caption) const {
    return std::ssize(captions_->rows[std::size_t(caption)]);
  }
  const task::Batch& make(std::span<const std::int64_t> rows, std::uint32_t epoch,
                          std::int64_t capacity);
  void resize(const task::Sizes& sizes);
  void put(std::int64_t place, std::int64_t caption);

  data::StreamNotes notes_;
  std::shared_ptr<const NumberedCaptions> captions_;
  CaptionBatchOptions options_;
  data::RowBatches batches_;
  task::Batch batch_;
};

// The inputs of a batch of captions of images whose features have this width.
std::vector<task::Input> caption_inputs(const task::Sizes& sizes, std::int64_t width);

}  // namespace keel::models
