// A tensor as a factor of products: of float32, of bf16, or of float32 that is rounded to bf16
// where it is read.
#pragma once

#include "backends/cuda/kernels/group4.cuh"
#include "src/core/bf16.h"

namespace keel::cuda {

__device__ inline float in_bf16(float value) { return float(BF16(value)); }

class Factor {
 public:
  Factor() = default;
  // `rounds`: whether float32 is rounded; bf16 is read as it is.
  explicit Factor(const TensorRef& t, bool rounds = false)
      : data_(t.data),
        size_(t.elements()),
        kind_(t.type.dtype == DType::kBF16 ? kNarrow
              : rounds                     ? kRounded
                                           : kWide) {}
  // `size` elements from `first` on.
  Factor part(std::int64_t first, std::int64_t size) const {
    Factor part = *this;
    const std::int64_t bytes = first * size_of(kind_ == kNarrow ? DType::kBF16 : DType::kF32);
    part.data_ = static_cast<const std::byte*>(data_) + bytes;
    part.size_ = size;
    return part;
  }

  const void* data() const { return data_; }

  __device__ float operator[](std::int64_t i) const {
    if (kind_ == kNarrow) return Global<const BF16>(static_cast<const BF16*>(data_), size_)[i];
    return rounded(wide()[i]);
  }
  // Elements `at` to `at + count` (at most 4); the others are 0. `is_aligned` means that `at` is a
  // multiple of 4 and count is 4.
  __device__ Group4 some(std::int64_t at, int count, bool is_aligned) const {
    if (is_aligned && kind_ != kNarrow) {
      const float4 four = wide().load4(at);
      return {rounded(four.x), rounded(four.y), rounded(four.z), rounded(four.w)};
    }
    Group4 group4{};
    for (int i = 0; i < 4; ++i) {
      if (i < count) group4.at[i] = (*this)[at + i];
    }
    return group4;
  }

 private:
  enum Kind : int { kWide, kNarrow, kRounded };

  __device__ Global<const float> wide() const { return {static_cast<const float*>(data_), size_}; }
  __device__ float rounded(float value) const { return kind_ == kRounded ? in_bf16(value) : value; }

  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  Kind kind_ = kWide;
};

// Whether products of a node whose first factor this is round their other factors to bf16.
inline bool is_narrow(const TensorRef& factor) { return factor.type.dtype == DType::kBF16; }

}  // namespace keel::cuda
