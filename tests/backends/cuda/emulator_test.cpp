// The SIMT emulator: what CUDA's model promises holds, and each fault that it claims to find it
// finds.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/warp.cuh"
#include "backends/cuda/matmul.h"

namespace keel::cuda {
namespace {

// A launch outside of every backend, on a device of its own.
template <class... Parameters, class... Args>
void start(void (*kernel)(Parameters...), Grid grid, const Args&... args) {
  Device device({});
  const OnDevice here(device);
  launch(kernel, grid, args...);
}

__global__ void number_threads(Global<float> y) { y[grid_thread()] = float(grid_thread()); }

__global__ void sum_of_block(Global<const float> x, Global<float> y) {
  const float total = over_block<96>(x[grid_thread()], Add());
  y[grid_thread()] = total;
}

// Every thread reads what its neighbour wrote before the barrier.
__global__ void pass_on(Global<float> y, bool with_barrier) {
  __shared__ Shared<float, 64> given;
  given[int(threadIdx.x)] = float(threadIdx.x);
  if (with_barrier) __syncthreads();
  y[threadIdx.x] = given[int(threadIdx.x + 1) % 64];
}

__global__ void behind_the_end(Global<float> y) { y[grid_thread() + 1] = 0; }
__global__ void four_at_the_end(Global<float> y) {
  y.store4(y.size() - 3, make_float4(0, 0, 0, 0));
}
__global__ void before_shared() {
  __shared__ Shared<float, 4> values;
  values[int(threadIdx.x) - 1] = 0;
}

__global__ void barrier_of_some() {
  if (threadIdx.x < 40) __syncthreads();
}
__global__ void different_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void shuffle_from_outside(Global<float> y) {
  if (threadIdx.x < 16) y[threadIdx.x] = __shfl_sync(0xffffu, float(threadIdx.x), 20);
}
__global__ void shuffle_without_itself() { __shfl_sync(0xffff0000u, 1.0f, 31); }
__global__ void different_masks() {
  if (threadIdx.x < 16) {
    __shfl_sync(0xffffu, 1.0f, 0);
  } else {
    __shfl_sync(kAllLanes, 1.0f, 0);
  }
}

// Every team of 32 threads reads what its neighbour wrote, as often as it has a number.
__global__ void pass_on_in_teams(Global<float> y) {
  __shared__ Shared<float, 96> given;
  const int thread = int(threadIdx.x), team = thread / 32;
  float value = float(thread);
  for (int turn = 0; turn <= team; ++turn) {
    given[thread] = value;
    sync_team(32);
    value = given[team * 32 + (thread + 1) % 32];
    sync_team(32);
  }
  y[thread] = value;
}
__global__ void team_without_one() {
  if (threadIdx.x != 70) sync_team(32);
}

// Elements 4 to 7 are read by everybody, the others once.
__global__ void read_some(Global<const float> x, Global<float> y) {
  const int thread = int(threadIdx.x);
  y[thread] = (thread / 4 == 1 ? 0 : x[thread]) + x.load4(4).x;
}

__global__ void lanes_below(unsigned limit, Global<std::uint32_t> y) {
  y[threadIdx.x] = __ballot_sync(kAllLanes, threadIdx.x < limit);
}

std::string fault(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kCheckFailed);
    return error.what();
  }
  return "";
}

bool names(const std::string& message, const std::string& part) {
  CAPTURE(message);
  CHECK(message.find(part) != std::string::npos);
  return message.find(part) != std::string::npos;
}

// Runs `body` under the usual order and under random ones.
template <class Body>
void for_each_order(const Body& body) {
  for (std::uint64_t seed = 0; seed <= 20; ++seed) {
    CAPTURE(seed);
    simt::set_order(seed);
    body();
  }
  simt::set_order(0);
}

TEST_CASE("cuda emulator: a product of what is not aligned as cuBLASLt is told is refused") {
  Device device({});
  const OnDevice here(device);
  alignas(kAlignment) float memory[64] = {};
  const ProductPlan product = plan_product({.sizes = {1, 1, 1, 1, false}});
  // Room for the workspace and for what begins a little later.
  std::vector<std::byte> room(std::size_t(product.workspace + 2 * kAlignment));
  std::byte* const work = room.data() + kAlignment - std::uintptr_t(room.data()) % kAlignment;
  CHECK(fault([&] { product({memory, memory + 16, nullptr, memory + 32, work}); }).empty());
  names(fault([&] { product({memory + 1, memory, nullptr, memory, work}); }), "first factor");
  names(fault([&] { product({memory, memory + 8, nullptr, memory, work}); }), "second factor");
  names(fault([&] { product({memory, memory, nullptr, memory + 4, work}); }), "result");
  names(fault([&] { product({memory, memory, nullptr, memory, work + 36}); }), "workspace");
}

TEST_CASE("cuda emulator: every thread of every block runs once") {
  for_each_order([] {
    std::vector<float> y(7 * 33, -1);
    start(number_threads, {7, 33}, Global<float>(y.data(), 7 * 33));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == float(i));
  });
}

TEST_CASE("cuda emulator: barriers and shuffles, in any order of threads") {
  for_each_order([] {
    std::vector<float> x(3 * 96), y(3 * 96);
    std::iota(x.begin(), x.end(), 0.0f);
    start(sum_of_block, {3, 96}, Global<const float>(x.data(), 3 * 96),
          Global<float>(y.data(), 3 * 96));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t block = i / 96;
      CHECK(y[i] == float(96 * 95 / 2 + 96 * 96 * block));
    }
    start(pass_on, {1, 64}, Global<float>(y.data(), 64), true);
    for (std::size_t i = 0; i < 64; ++i) CHECK(y[i] == float((i + 1) % 64));
  });
}

TEST_CASE("cuda emulator: a team waits for its own threads alone") {
  for_each_order([] {
    std::vector<float> y(96);
    start(pass_on_in_teams, {1, 96}, Global<float>(y.data(), 96));
    for (int i = 0; i < 96; ++i) {
      CHECK(y[std::size_t(i)] == float(i / 32 * 32 + (i + i / 32 + 1) % 32));
    }
  });
  CHECK(names(fault([] { start(team_without_one, {1, 96}); }), "for its team"));
}

TEST_CASE("cuda emulator: reads are counted") {
  std::vector<float> x(16, 1), y(16);
  const simt::ReadCount count(x.data(), 16);
  start(read_some, {1, 16}, Global<const float>(x.data(), 16), Global<float>(y.data(), 16));
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(count.times()[i] == (i / 4 == 1 ? 16 : 1));
}

TEST_CASE("cuda emulator: a ballot names the lanes that said yes") {
  std::vector<std::uint32_t> y(32);
  start(lanes_below, {1, 32}, 5u, Global<std::uint32_t>(y.data(), 32));
  for (std::uint32_t lanes : y) CHECK(lanes == 0b11111u);
}

TEST_CASE("cuda emulator: shared memory read without a barrier is not what was meant") {
  std::vector<float> first(64), other(64);
  bool differs = false;
  start(pass_on, {1, 64}, Global<float>(first.data(), 64), false);
  CHECK(std::isnan(first[0]));  // the neighbour had not written yet
  for_each_order([&] {
    start(pass_on, {1, 64}, Global<float>(other.data(), 64), false);
    differs = differs || std::memcmp(first.data(), other.data(), sizeof(float) * 64) != 0;
  });
  CHECK(differs);
}

TEST_CASE("cuda emulator: an index outside of a tensor") {
  std::vector<float> y(64);
  const Global<float> tensor(y.data(), 64);
  CHECK(names(fault([&] {
                start(behind_the_end, {2, 32}, tensor);
              }),
              "block 1 thread 31: global memory element 64 of 64"));
  CHECK(names(fault([&] { start(four_at_the_end, {1, 1}, tensor); }), "element 64 of 64"));
  CHECK(names(fault([&] { start(before_shared, {1, 2}); }), "shared memory element -1 of 4"));
}

TEST_CASE("cuda emulator: a barrier that not all threads reach") {
  CHECK(names(fault([&] { start(barrier_of_some, {1, 64}); }), "thread 40 has returned"));
  CHECK(names(fault([&] { start(different_barriers, {1, 64}); }), "divergence in block 0"));
}

TEST_CASE("cuda emulator: a shuffle whose mask is wrong") {
  std::vector<float> y(32);
  CHECK(names(fault([&] {
                start(shuffle_from_outside, {1, 32}, Global<float>(y.data(), 32));
              }),
              "a shuffle from lane 20"));
  CHECK(names(fault([&] { start(shuffle_without_itself, {1, 32}); }), "leaves out its own lane"));
  CHECK(names(fault([&] { start(different_masks, {1, 32}); }), "for lanes that do not come"));
}

TEST_CASE("cuda emulator: a kernel runs again after a fault") {
  std::vector<float> y(33, -1);
  fault([&] { start(barrier_of_some, {1, 64}); });
  start(number_threads, {1, 33}, Global<float>(y.data(), 33));
  CHECK(y[32] == 32);
}

TEST_CASE("cuda emulator: writing beside device memory is found") {
  Device device({});
  std::byte* memory = device.allocate(100);
  memory[100] = std::byte{1};
  CHECK(names(fault([&] { device.synchronize(); }), "outside of 100 bytes"));
  device.release(memory);
  CHECK(fault([&] { device.synchronize(); }).empty());
}

}  // namespace
}  // namespace keel::cuda
