// CUDA's execution model on the host: a block's threads are fibers, and warp shuffles and barriers
// switch between them. Faults that a GPU would not report become errors that say where.
//
// It finds: an index outside of a tensor or shared array; shared memory read before it is written
// (it starts as NaN); a barrier that not all threads of a block reach, or that they reach at
// different places; a shuffle whose mask names lanes that do not take part. With a seed, blocks and
// the threads between barriers run in a random order, and warps at different speeds: a result that
// depends on the order is a race.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "backends/cuda/emulator/reads.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline

// These names are those of CUDA, so that kernels compile unchanged.
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
using std::isfinite;
using std::isnan;

namespace keel::cuda::simt {

struct Index {
  unsigned x;
};

// The emulated thread that is running. One thread of the host at a time runs all of them.
struct Here {
  Index thread{}, block{}, threads{}, blocks{};
  std::uint64_t serial = 0;  // of the block, counted over all kernels
};
inline Here here;

// Counts of the work done so far, for tests.
struct Counts {
  std::int64_t launches = 0;    // of kernels that have run
  std::int64_t recordings = 0;  // of steps
  std::int64_t waits = 0;       // of the host for the device
};
inline Counts counts;

// A caller's stream (OnStream), for one thread at a time. Its work is done as late as may be: when
// the stream is waited for. What has been enqueued is thereby seen to be on the right stream.
struct Stream {
  int device = 0;
  std::vector<std::function<void()>> work = {};
};
// Does the work of a stream, and finds what kernels wrote outside of their memory.
void synchronize(Stream& stream);

// Enqueues device work: it is done at once or, while a step is recorded, at each replay. That of a
// stream waits.
void enqueue(std::function<void()> work);

// Runs `kernel` for every thread of every block. Throws Error{kCheckFailed} if it finds a fault.
void run(std::int64_t blocks, int threads, const std::function<void()>& kernel);

// Sets the order of blocks, and of threads between barriers: 0 is ascending, else a random seed.
void set_order(std::uint64_t seed);

void sync_block(int line);
// A barrier of this thread's team of `threads` neighbours.
void sync_team(int threads, int line = __builtin_LINE());
// The value that lane `source` passed to the same call; all lanes of `mask` must take part.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source, int line);
// The lanes of `mask` that passed true.
unsigned ballot(unsigned mask, bool value, int line);
inline int lane() { return int(here.thread.x % 32); }

[[noreturn]] void fail_access(const char* what, std::int64_t element, std::int64_t size);
inline void check_access(const char* what, std::int64_t first, std::int64_t count,
                         std::int64_t size) {
  if (first < 0 || first + count > size) [[unlikely]]
    fail_access(what, first + count - 1, size);
}
// Fills shared memory with NaN when a new block first touches it.
inline void enter_block(std::uint64_t& owner, void* elements, std::size_t bytes) {
  if (owner == here.serial) return;
  owner = here.serial;
  std::memset(elements, 0xff, bytes);
}

template <class T>
T exchange_as(unsigned mask, T value, int source, int line) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(mask, bits, source, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace keel::cuda::simt

#define KEEL_CHECK_ACCESS(what, first, count, size) \
  ::keel::cuda::simt::check_access(what, first, count, size)

#define threadIdx (::keel::cuda::simt::here.thread)
#define blockIdx (::keel::cuda::simt::here.block)
#define blockDim (::keel::cuda::simt::here.threads)
#define gridDim (::keel::cuda::simt::here.blocks)

#define __syncthreads() ::keel::cuda::simt::sync_block(__LINE__)
#define __syncwarp(...) ((void)::keel::cuda::simt::ballot(0xffffffffu, true, __LINE__))
#define __shfl_sync(mask, value, source) \
  ::keel::cuda::simt::exchange_as(mask, value, (source)&31, __LINE__)
#define __shfl_xor_sync(mask, value, other) \
  ::keel::cuda::simt::exchange_as(mask, value, ::keel::cuda::simt::lane() ^ (other), __LINE__)
#define __ballot_sync(mask, value) ::keel::cuda::simt::ballot(mask, value, __LINE__)
#define __any_sync(mask, value) (::keel::cuda::simt::ballot(mask, value, __LINE__) != 0)
#define __popc(bits) __builtin_popcount(bits)
#define __ffs(bits) __builtin_ffs(bits)
