// The interface that kernels are written against: CUDA itself or, with -Dcuda=emulated, the SIMT
// emulator under CUDA's names. A kernel is plain CUDA C++ started by launch(). It reaches tensors
// through Global and keeps shared memory in Shared; the emulator checks every access of both.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/runtime.h"
#include "src/runtime/backend.h"
#ifdef KEEL_CUDA_EMULATED
#include "backends/cuda/emulator/simt.h"
#else
#include <cuda_runtime.h>
#define KEEL_CHECK_ACCESS(what, first, count, size) ((void)0)
#endif

// Put this before a loop whose body indexes an array that must stay in registers.
#ifdef KEEL_CUDA_EMULATED
#define KEEL_UNROLL
#else
#define KEEL_UNROLL _Pragma("unroll")
#endif

namespace keel::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

// A tensor in device memory; absent when it has no address.
template <class T>
class Global {
 public:
  Global() = default;
  __host__ __device__ Global(T* data, std::int64_t size) : data_(data), size_(size) {}
  // The same tensor, read-only.
  template <class U>
  requires std::is_same_v<const U, T> __host__ __device__ Global(const Global<U>& other)
      : Global(other.data(), other.size()) {}

  __host__ __device__ T* data() const { return data_; }
  __host__ __device__ explicit operator bool() const { return data_ != nullptr; }
  __host__ __device__ std::int64_t size() const { return size_; }
  __device__ T& operator[](std::int64_t i) const {
    touch(i, 1);
    return data_[i];
  }
  // Element i, or `otherwise` when the tensor is absent.
  __device__ T get(std::int64_t i, T otherwise) const { return data_ ? (*this)[i] : otherwise; }
  // Elements i to i + 3 in one access of 16 bytes; T is 4 bytes wide and i a multiple of 4.
  __device__ float4 load4(std::int64_t i) const {
    touch(i, 4);
    return *reinterpret_cast<const float4*>(data_ + i);
  }
  // Prefetches the cache line of element i into L2, if element i exists.
  __device__ void prefetch([[maybe_unused]] std::int64_t i) const {
#ifndef KEEL_CUDA_EMULATED
    if (i < size_) asm volatile("prefetch.L2 [%0];" ::"l"(data_ + i));
#endif
  }
  __device__ void store4(std::int64_t i, float4 value) const {
    touch(i, 4);
    *reinterpret_cast<float4*>(data_ + i) = value;
  }

 private:
  __device__ void touch(std::int64_t i, std::int64_t count) const {
    KEEL_CHECK_ACCESS("global memory", i, count, size_);
#ifdef KEEL_CUDA_EMULATED
    if constexpr (std::is_const_v<T>) simt::note_read(data_ + i, count * sizeof(T));
#endif
  }
  friend bool operator==(const Global&, const Global&) = default;

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

// A tensor's memory as an array of T, where T is its element type or as wide as several elements.
template <class T>
Global<T> global(const TensorRef& t) {
  return {t.as<std::remove_const_t<T>>(), t ? t.type.bytes() / std::int64_t(sizeof(T)) : 0};
}
// A tensor's elements, for a kernel to read.
inline Global<const float> input(const TensorRef& t) { return global<const float>(t); }
inline Global<float> output(const TensorRef& t) { return global<float>(t); }
// `size` elements of the node's workspace, beginning at byte `offset`.
template <class T = float>
Global<T> workspace(const Binding& b, std::int64_t size, std::int64_t offset = 0) {
  return {reinterpret_cast<T*>(static_cast<std::byte*>(b.workspace) + offset), size};
}

// An array of a block's shared memory; declared as `__shared__ Shared<float, 32> sums;`.
template <class T, int kSize>
class Shared {
 public:
  __device__ T& operator[](int i) {
    KEEL_CHECK_ACCESS("shared memory", i, 1, kSize);
#ifdef KEEL_CUDA_EMULATED
    simt::enter_block(block_, elements_, sizeof elements_);
#endif
    return elements_[i];
  }

 private:
  T elements_[kSize];
#ifdef KEEL_CUDA_EMULATED
  std::uint64_t block_ = 0;  // the block that its content belongs to
#endif
};

// The grid of a kernel: number of blocks and threads a block. With 0 blocks nothing runs.
struct Grid {
  std::int64_t blocks;
  int threads;
};

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A grid with one thread for each of n elements, in blocks of 256. Beyond 2^30 blocks, kernels
// reach the remaining elements by grid-stride loops.
inline Grid one_thread_each(std::int64_t n) {
  return {std::min<std::int64_t>(ceil_div(n, 256), std::int64_t{1} << 30), 256};
}

// This thread's index in the grid, and the number of threads: the first element and the
// stride of a grid-stride loop.
__device__ inline std::int64_t grid_thread() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

// A barrier of `threads` neighbouring threads of the block, a multiple of 32 that divides it.
__device__ inline void sync_team(int threads) {
#ifdef KEEL_CUDA_EMULATED
  simt::sync_team(threads);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(1 + int(threadIdx.x) / threads), "r"(threads) : "memory");
#endif
}

// Starts a kernel on this thread's current stream. If that fails, throws Error with the message of
// CUDA.
template <class... Parameters, class... Args>
void launch(void (*kernel)(Parameters...), Grid grid, const Args&... args) {
  if (grid.blocks == 0) return;
#ifdef KEEL_CUDA_EMULATED
  simt::enqueue([=] { simt::run(grid.blocks, grid.threads, [&] { kernel(args...); }); });
#else
  kernel<<<static_cast<unsigned>(grid.blocks), grid.threads, 0, current_stream()>>>(args...);
  KEEL_CUDA_CALL(cudaGetLastError());
#endif
}

}  // namespace keel::cuda
