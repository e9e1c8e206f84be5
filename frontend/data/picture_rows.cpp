#include "frontend/data/picture_rows.h"

#include <algorithm>
#include <utility>

#include "frontend/data/fixed_batches.h"
#include "src/core/rng.h"

namespace keel::data {
namespace {

constexpr std::int64_t kPlane = kPictureSide * kPictureSide, kColours = 3;
constexpr std::int64_t kFrame = 4;  // black pixels on each side
constexpr std::uint32_t kCropStream = stream_of("pictures.crop_and_flip");

constexpr std::array<double, 3> kMean{0.485, 0.456, 0.406}, kDeviation{0.229, 0.224, 0.225};

std::array<std::array<float, 256>, 3> normalized_values() {
  std::array<std::array<float, 256>, 3> values;
  for (std::size_t colour = 0; colour < 3; ++colour) {
    for (std::size_t x = 0; x < 256; ++x) {
      values[colour][x] = float((double(x) / 255 - kMean[colour]) / kDeviation[colour]);
    }
  }
  return values;
}

// One line of a plane, moved to the left; what comes from outside is black.
void put_line(const std::uint8_t* line, const CropAndFlip& how, const std::array<float, 256>& value,
              float* out) {
  for (std::int64_t x = 0; x < kPictureSide; ++x) {
    const std::int64_t from = x + how.right;
    const bool inside = line != nullptr && from >= 0 && from < kPictureSide;
    out[how.flip ? kPictureSide - 1 - x : x] = value[inside ? line[from] : 0];
  }
}

void put_plane(const std::uint8_t* plane, const CropAndFlip& how,
               const std::array<float, 256>& value, float* out) {
  for (std::int64_t y = 0; y < kPictureSide; ++y) {
    const std::int64_t from = y + how.down;
    const bool inside = from >= 0 && from < kPictureSide;
    put_line(inside ? plane + from * kPictureSide : nullptr, how, value, out + y * kPictureSide);
  }
}

}  // namespace

Pictures Pictures::of_size(std::int64_t rows) {
  return {Tensor(DType::kU8, {rows, kColours, kPictureSide, kPictureSide}),
          Tensor(DType::kI32, {rows})};
}

Pictures Pictures::slice(std::int64_t first, std::int64_t count) const {
  check(first >= 0 && count >= 0 && count <= rows() - first, ErrorKind::kUsage,
        "[pictures] expected rows within {}, got {} from {}", rows(), count, first);
  Pictures part = of_size(count);
  std::copy_n(image.data() + first * kColours * kPlane, count * kColours * kPlane,
              part.image.data());
  std::copy_n(label.as<std::int32_t>().data() + first, count, part.label.as<std::int32_t>().data());
  return part;
}

std::uint8_t* Pictures::picture(std::int64_t row) {
  return image.as<std::uint8_t>().data() + row * kColours * kPlane;
}

CropAndFlip crop_and_flip(std::uint64_t seed, std::uint32_t epoch, std::int64_t row) {
  const Philox random(seed, kCropStream, epoch);
  const std::uint64_t first = 4 * std::uint64_t(row);  // a row has a block of four numbers
  constexpr std::uint32_t kPlaces = 2 * kFrame + 1;
  return {std::int64_t(random.below(first, kPlaces)) - kFrame,
          std::int64_t(random.below(first + 1, kPlaces)) - kFrame, random.below(first + 2, 2) == 1};
}

std::vector<Input> picture_inputs(const Sizes& sizes) {
  const std::int64_t rows = sizes.at(0);
  return {{"image", {DType::kF32, {rows, kColours, kPictureSide, kPictureSide}}},
          {"label", {DType::kI32, {rows}}, -1}};
}

PictureRows::PictureRows(SplitNotes notes, Pictures pictures, bool augments)
    : Dataset(std::move(notes)),
      pictures_(std::move(pictures)),
      augments_(augments),
      values_(normalized_values()) {}

std::unique_ptr<BatchSampler> PictureRows::plan(const StreamOptions& options) const {
  return std::make_unique<FixedBatches>(rows(), options);
}

void PictureRows::put(Batch& batch, const RowVisit& visit) const {
  const CropAndFlip how =
      augments_ && visit.seed ? crop_and_flip(*visit.seed, visit.epoch, visit.row) : CropAndFlip{};
  const std::uint8_t* from =
      pictures_.image.as<std::uint8_t>().data() + visit.row * kColours * kPlane;
  float* out = batch.values[0].as<float>().data() + visit.place * kColours * kPlane;
  for (std::int64_t colour = 0; colour < kColours; ++colour) {
    put_plane(from + colour * kPlane, how, values_[std::size_t(colour)], out + colour * kPlane);
  }
  batch.values[1].as<std::int32_t>()[std::size_t(visit.place)] =
      pictures_.label.as<std::int32_t>()[std::size_t(visit.row)];
}

}  // namespace keel::data
