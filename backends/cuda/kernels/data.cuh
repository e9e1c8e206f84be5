// The data of norms: tensors that are read as float32, and results that are computed in float32,
// where memory holds float32 or bf16. A kernel computes the same for both.
#pragma once

#include <bit>

#include "backends/cuda/kernels/group4.cuh"
#include "src/core/bf16.h"

namespace keel::cuda {

// A tensor to read; absent when it has no address. Whether it is of bf16 is the same for all
// threads, and known to the compiler where it is made from a Global.
class Data {
 public:
  Data() = default;
  __host__ __device__ Data(Global<const float> wide) : data_(wide.data()), size_(wide.size()) {}
  __host__ __device__ Data(Global<float> wide) : Data(Global<const float>(wide)) {}
  explicit Data(const TensorRef& t)
      : data_(t.data), size_(t ? t.elements() : 0), is_narrow_(t && t.type.dtype == DType::kBF16) {}

  __host__ __device__ explicit operator bool() const { return data_ != nullptr; }
  __device__ bool is_narrow() const { return is_narrow_; }
  __device__ float operator[](std::int64_t i) const { return widened(fetch(i)); }
  // Prefetches the cache line of element i into L2, if element i exists.
  __device__ void prefetch(std::int64_t i) const {
    is_narrow_ ? narrow<BF16>().prefetch(i) : wide().prefetch(i);
  }

  // An element as it lies in memory, and the four from i on, a multiple of 4, in one access. They
  // become numbers by widened(), which is apart because it waits for the memory: many reads are
  // under way at once only where nothing waits between them.
  __device__ float fetch(std::int64_t i) const {
    return is_narrow_ ? std::bit_cast<float>(std::uint32_t{narrow<std::uint16_t>()[i]}) : wide()[i];
  }
  __device__ Group4 fetch_four(std::int64_t i) const {
    if (is_narrow_) {
      const std::uint64_t four = narrow<std::uint64_t>()[i / 4];
      return {std::bit_cast<float>(std::uint32_t(four)),
              std::bit_cast<float>(std::uint32_t(four >> 32)), 0, 0};
    }
    const float4 four = wide().load4(i);
    return {four.x, four.y, four.z, four.w};
  }
  // Elements `at` to `at + count` (at most 4); the others are 0. `is_aligned` means that `at` is a
  // multiple of 4 and count is 4.
  __device__ Group4 fetch_some(std::int64_t at, int count, bool is_aligned) const {
    if (is_aligned) return fetch_four(at);
    Group4 group4{};
    for (int i = 0; i < 4; ++i) {
      if (i < count) group4.at[i] = fetch(at + i);
    }
    return group4;
  }

  __device__ float widened(float fetched) const {
    return is_narrow_ ? std::bit_cast<float>(word(fetched) << 16) : fetched;
  }
  __device__ Group4 widened_four(const Group4& fetched) const {
    if (!is_narrow_) return fetched;
    const std::uint32_t low = word(fetched.at[0]), high = word(fetched.at[1]);
    return {std::bit_cast<float>(low << 16), std::bit_cast<float>(low & 0xffff0000u),
            std::bit_cast<float>(high << 16), std::bit_cast<float>(high & 0xffff0000u)};
  }
  __device__ Group4 widened_some(const Group4& fetched, bool is_aligned) const {
    if (is_aligned) return widened_four(fetched);
    return {widened(fetched.at[0]), widened(fetched.at[1]), widened(fetched.at[2]),
            widened(fetched.at[3])};
  }

 private:
  __device__ static std::uint32_t word(float bits) { return std::bit_cast<std::uint32_t>(bits); }
  __device__ Global<const float> wide() const { return {static_cast<const float*>(data_), size_}; }
  // Elements of bf16 as an array of T, which is as wide as one or several of them.
  template <class T>
  __device__ Global<const T> narrow() const {
    return {static_cast<const T*>(data_), size_ / std::int64_t(sizeof(T) / sizeof(BF16))};
  }

  const void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool is_narrow_ = false;
};

// A tensor to write, in which bf16 is rounded to the nearest, ties to even.
class Result {
 public:
  Result() = default;
  __host__ __device__ Result(Global<float> wide) : data_(wide.data()), size_(wide.size()) {}
  explicit Result(const TensorRef& t)
      : data_(t.data), size_(t ? t.elements() : 0), is_narrow_(t && t.type.dtype == DType::kBF16) {}

  __device__ void store(std::int64_t i, float value) const {
    if (is_narrow_) {
      Global<BF16>(static_cast<BF16*>(data_), size_)[i] = BF16(value);
    } else {
      wide()[i] = value;
    }
  }
  // The four elements from i on, a multiple of 4, in one access.
  __device__ void store_four(std::int64_t i, const float (&of)[4]) const {
    if (is_narrow_) {
      const std::uint32_t low = bf16_bits(of[0]) | std::uint32_t{bf16_bits(of[1])} << 16;
      const std::uint32_t high = bf16_bits(of[2]) | std::uint32_t{bf16_bits(of[3])} << 16;
      const Global<std::uint64_t> fours(static_cast<std::uint64_t*>(data_), size_ / 4);
      fours[i / 4] = low | std::uint64_t{high} << 32;
    } else {
      wide().store4(i, make_float4(of[0], of[1], of[2], of[3]));
    }
  }

 private:
  __device__ Global<float> wide() const { return {static_cast<float*>(data_), size_}; }

  void* data_ = nullptr;
  std::int64_t size_ = 0;
  bool is_narrow_ = false;
};

}  // namespace keel::cuda
