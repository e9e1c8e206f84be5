// Pictures in three colours, each of a class, and their way into batches.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "frontend/data/dataset.h"

namespace keel::data {

inline constexpr std::int64_t kPictureSide = 32;

// Pictures of 32 x 32 pixels with the numbers of their classes.
struct Pictures {
  Tensor image{DType::kU8, {0, 3, kPictureSide, kPictureSide}};  // planes red, green, blue
  Tensor label{DType::kI32, {0}};

  static Pictures of_size(std::int64_t rows);
  std::int64_t rows() const { return label.elements(); }
  // A copy of rows [first, first + count). Throws Error{kUsage} unless all of them exist.
  Pictures slice(std::int64_t first, std::int64_t count) const;
  std::uint8_t* picture(std::int64_t row);
};

// Where a crop of a picture begins, and whether left and right change places.
struct CropAndFlip {
  std::int64_t down = 0, right = 0;  // from the picture's first pixel; below 0: in the frame
  bool flip = false;
};

// Moves a picture by -4 to 4 pixels either way and flips half of them: a crop of 32 x 32 pixels
// from the picture in a frame of 4 black pixels (He et al. 2016, section 4.2). A pure function of
// (seed, epoch, row).
CropAndFlip crop_and_flip(std::uint64_t seed, std::uint32_t epoch, std::int64_t row);

// Inputs "image" f32 (rows, 3, 32, 32) and "label" i32 (rows), which is -1 in rows of padding.
std::vector<Input> picture_inputs(const Sizes& sizes);

// The pictures as (x / 255 - mean) / deviation, with mean and deviation of each colour in ImageNet,
// as most programs for CIFAR-10 have them. In FixedBatches.
class PictureRows final : public Dataset {
 public:
  // `augments`: training sees crop_and_flip of every row. Evaluation sees it as it is.
  PictureRows(SplitNotes notes, Pictures pictures, bool augments);

  std::int64_t rows() const { return pictures_.rows(); }
  std::unique_ptr<BatchSampler> plan(const StreamOptions& options) const override;
  std::vector<Input> inputs(const Sizes& sizes) const override { return picture_inputs(sizes); }
  void put(Batch& batch, const RowVisit& visit) const override;

 private:
  Pictures pictures_;
  bool augments_;
  std::array<std::array<float, 256>, 3> values_;  // of each colour, by byte
};

}  // namespace keel::data
