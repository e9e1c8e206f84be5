// How the threads of a block cover a tensor (outer, channels, inner) whose columns or channels are
// processed separately. Neighbouring threads have neighbouring elements: four each, if these can be
// read in one access of 16 bytes.
#pragma once

#include <algorithm>
#include <bit>

#include "backends/cuda/kernels/data.cuh"
#include "backends/cuda/kernels/index.cuh"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {

inline constexpr int kColumnBlock = 256;            // threads
inline constexpr std::int64_t kBlocksWanted = 528;  // four a multiprocessor of an H200

inline std::int64_t aligned_bytes(std::int64_t bytes) { return ceil_div(bytes, 256) * 256; }

// `wide` neighbouring elements are read at once. For tokens, `lanes` threads, a power of 2, have
// `wide` columns each, and the block's other threads have other rows of these columns. An image
// has `groups` of `wide` neighbours in every channel, and neighbouring threads have neighbouring
// groups.
struct Tiling {
  int wide, lane_bits;
  std::int64_t strips;  // of columns, or channels
  std::int64_t groups;  // of one channel of one image

  __host__ __device__ int lanes() const { return 1 << lane_bits; }
  __host__ __device__ int slots() const { return kColumnBlock >> lane_bits; }
};
inline Tiling tiling_of(const ColumnSizes& s) {
  if (s.inner > 1) {
    const int wide = s.inner % 4 == 0 ? 4 : 1;
    return {wide, 0, s.channels, s.inner / wide};
  }
  const int wide = s.channels % 4 == 0 ? 4 : 1;
  const std::int64_t threads = std::clamp<std::int64_t>(s.channels / wide, 1, kWarp);
  const int bits = std::bit_width(std::uint64_t(threads) - 1);
  return {wide, bits, ceil_div(s.channels, std::int64_t{wide} << bits), 1};
}

// kWide neighbouring elements of x as they lie in memory, for widen().
template <int kWide>
struct Wide {
  float at[kWide];

  __device__ Wide(const Data& x, std::int64_t i) {
    if constexpr (kWide == 4) {
      const Group4 four = x.fetch_four(i);
      for (int w = 0; w < 4; ++w) at[w] = four.at[w];
    } else {
      at[0] = x.fetch(i);
    }
  }
};
// Makes numbers of the kWide elements of x at(0), at(1), ..., which have been fetched.
template <int kWide, class At>
__device__ void widen(const Data& x, At at) {
  if constexpr (kWide == 4) {
    const Group4 four = x.widened_four({at(0), at(1), at(2), at(3)});
    for (int w = 0; w < 4; ++w) at(w) = four.at[w];
  } else {
    at(0) = x.widened(at(0));
  }
}
template <int kWide>
__device__ void store_wide(const Result& y, std::int64_t i, const float (&values)[kWide]) {
  if constexpr (kWide == 4) {
    y.store_four(i, values);
  } else {
    y.store(i, values[0]);
  }
}

// A thread's share of tokens: its columns, and every slots-th row.
struct TokenPlace {
  int slot;
  std::int64_t column, strip_row;  // the index of the piece of the strip's rows
  bool exists;

  __device__ TokenPlace(const ColumnSizes& sizes, const Tiling& tiling, int wide) {
    const int lane = int(threadIdx.x) & (tiling.lanes() - 1);
    slot = int(threadIdx.x) >> tiling.lane_bits;
    const Divided block(blockIdx.x, tiling.strips);
    column = ((block.rest << tiling.lane_bits) + lane) * wide;
    strip_row = block.quotient;
    exists = column < sizes.channels;
  }
};

// Tells which rows take part: all, or those where the mask u8 (outer) is not 0.
struct KeptRows {
  Global<const std::uint8_t> mask;
  __device__ bool operator()(std::int64_t row) const { return fetch(row) != 0; }
  // Reads what operator() compares; it is apart for the same reason as Data::fetch.
  __device__ unsigned fetch(std::int64_t row) const { return mask ? mask[row] : 1u; }
};
inline KeptRows kept_rows(const TensorRef& mask) { return {global<const std::uint8_t>(mask)}; }

// One step of a thread: the place of its wide neighbours, their outer index, and whether they
// exist. What exists is either kept or left out.
struct TileStep {
  std::int64_t at, row;
  bool exists, is_kept = true, is_left_out = false;
};

// The steps of a thread over its part of the rows [first, last) of tokens.
class TokenSteps {
 public:
  __device__ TokenSteps(const ColumnSizes& sizes, const Tiling& tiling, const TokenPlace& place,
                        std::int64_t first, std::int64_t last)
      : row_(first + place.slot),
        last_(place.exists ? last : 0),
        slots_(tiling.slots()),
        column_(place.column),
        channels_(sizes.channels) {}
  __device__ bool go_on() const { return row_ < last_; }
  __device__ TileStep next() {
    const std::int64_t row = row_;
    row_ += slots_;
    return {row * channels_ + column_, row, row < last_};
  }

 private:
  std::int64_t row_, last_;
  int slots_;
  std::int64_t column_, channels_;
};

// The steps of a block's thread over its part of the groups [first, last) of a channel, counted
// through all images.
class ImageSteps {
 public:
  __device__ ImageSteps(const ColumnSizes& sizes, const Tiling& tiling, std::int64_t channel,
                        std::int64_t first, std::int64_t last)
      : group_(first + threadIdx.x),
        last_(last),
        groups_(tiling.groups),
        wide_(tiling.wide),
        image_stride_(sizes.channels * sizes.inner),
        channel_at_(channel * sizes.inner) {
    const Divided place(group_, groups_), step(kColumnBlock, groups_);
    image_ = place.quotient, rest_ = place.rest;
    step_images_ = int(step.quotient), step_rest_ = int(step.rest);
  }
  __device__ bool go_on() const { return group_ < last_; }
  __device__ TileStep next() {
    const TileStep step{image_ * image_stride_ + channel_at_ + rest_ * wide_, image_,
                        group_ < last_};
    group_ += kColumnBlock, image_ += step_images_, rest_ += step_rest_;
    if (rest_ >= groups_) rest_ -= groups_, ++image_;
    return step;
  }

 private:
  std::int64_t group_, last_, groups_, image_, rest_;
  int wide_, step_images_, step_rest_;
  std::int64_t image_stride_, channel_at_;
};

// The steps of a warp's thread over groups [first, last) of a channel of one image.
class PlaneSteps {
 public:
  __device__ PlaneSteps(const ColumnSizes& sizes, const Tiling& tiling, std::int64_t plane,
                        std::int64_t first, std::int64_t last)
      : group_(first + threadIdx.x % kWarp),
        last_(last),
        plane_at_(plane * sizes.inner),
        image_(Divided(plane, sizes.channels).quotient),
        wide_(tiling.wide) {}
  __device__ bool go_on() const { return group_ < last_; }
  __device__ TileStep next() {
    const std::int64_t group = group_;
    group_ += kWarp;
    return {plane_at_ + group * wide_, image_, group < last_};
  }

 private:
  std::int64_t group_, last_, plane_at_, image_;
  int wide_;
};

// The elements that a thread reads in kSteps steps from F::tensors, of which there are F::kTensors,
// and from the mask of F::kept, if it is there. All accesses are under way before any is waited
// for. The first step must exist; in place of those that do not it is read again, without a branch.
template <class F, int kWide, int kSteps>
class Batch {
 public:
  template <class TileSteps>
  __device__ Batch(const F& f, TileSteps& steps) {
    KEEL_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      steps_[i] = steps.next();
      if (!steps_[i].exists) steps_[i].at = steps_[0].at, steps_[i].row = steps_[0].row;
      mask_[i] = 1;
      if constexpr (requires { f.kept; }) mask_[i] = f.kept.fetch(steps_[i].row);
      for (int t = 0; t < F::kTensors; ++t) {
        const Wide<kWide> wide(f.tensors[t], steps_[i].at);
        for (int w = 0; w < kWide; ++w) values_[i][w][t] = wide.at[w];
      }
    }
  }
  // Calls visit(step, values of each neighbour and tensor). Values that do not exist are 0.
  template <bool kMasked, class Visit>
  __device__ void each(const F& f, Visit visit) {
    KEEL_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      TileStep step = steps_[i];
      const bool is_kept = !kMasked || mask_[i] != 0;
      step.is_kept = step.exists && is_kept;
      step.is_left_out = step.exists && !is_kept;
      for (int t = 0; t < F::kTensors; ++t) {
        widen<kWide>(f.tensors[t], [&](int w) -> float& { return values_[i][w][t]; });
        for (int w = 0; w < kWide; ++w) {
          values_[i][w][t] = step.exists ? values_[i][w][t] : 0;
        }
      }
      visit(step, values_[i]);
    }
  }

 private:
  TileStep steps_[kSteps];
  unsigned mask_[kSteps];
  float values_[kSteps][kWide][F::kTensors];
};

}  // namespace keel::cuda
