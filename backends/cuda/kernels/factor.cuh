// A tensor as a factor of products: of float32, of bf16, or of float32 that is rounded to bf16 where
// it is read.
#pragma once

#include "backends/cuda/kernels/quad.cuh"
#include "src/core/bf16.h"

namespace keel::cuda {

__device__ inline float in_bf16(float value) { return float(BF16(value)); }

class Factor {
 public:
  Factor() = default;
  // `rounds`: whether float32 is rounded; bf16 is read as it is.
  explicit Factor(const TensorRef& t, bool rounds = false) : rounds_(rounds) {
    if (t && t.type.dtype == DType::kBF16) {
      narrow_ = global<const BF16>(t);
    } else {
      wide_ = input(t);
    }
  }
  // `size` elements from `first` on.
  Factor part(std::int64_t first, std::int64_t size) const {
    Factor part = *this;
    if (narrow_) part.narrow_ = {narrow_.data() + first, size};
    if (wide_) part.wide_ = {wide_.data() + first, size};
    return part;
  }

  __device__ float operator[](std::int64_t i) const {
    if (narrow_) return narrow_[i];
    return rounds_ ? in_bf16(wide_[i]) : wide_[i];
  }
  // Elements `at` to `at + count` (at most 4); the others are 0. `is_aligned` means that `at` is a
  // multiple of 4 and count is 4.
  __device__ Quad some(std::int64_t at, int count, bool is_aligned) const {
    Quad quad{};
    if (is_aligned && wide_) {
      const float4 four = wide_.load4(at);
      quad = {four.x, four.y, four.z, four.w};
      if (rounds_) {
        for (float& x : quad.at) x = in_bf16(x);
      }
      return quad;
    }
    for (int i = 0; i < 4; ++i) {
      if (i < count) quad.at[i] = (*this)[at + i];
    }
    return quad;
  }

 private:
  Global<const float> wide_;
  Global<const BF16> narrow_;
  bool rounds_ = false;
};

// Whether products of a node whose first factor this is round their other factors to bf16.
inline bool is_narrow(const TensorRef& factor) { return factor.type.dtype == DType::kBF16; }

}  // namespace keel::cuda
