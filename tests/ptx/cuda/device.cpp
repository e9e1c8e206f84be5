#include "tests/ptx/cuda/device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/ptx/approximate.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGap = 1024;  // between pieces, where nothing may be touched
constexpr std::size_t kMost = std::size_t{80} << 30;  // as much as an A100 has

// KEEL_PTX_APPROXIMATION=high chooses the other end of an approximation; see approximate.h.
void read_surroundings() {
  const char* const end = std::getenv("KEEL_PTX_APPROXIMATION");
  set_high_approximation(end && std::strcmp(end, "high") == 0);
}

}  // namespace

Device& device() {
  // It is never destroyed, since the program's own destructors call CUDA.
  static Device* const made = [] {
    read_surroundings();
    return new Device;
  }();
  return *made;
}

std::byte* Device::allocate(std::size_t bytes) {
  if (bytes > kMost) return nullptr;
  std::vector<std::byte> piece(bytes + kAlignment + 2 * kGap);
  const auto start = reinterpret_cast<std::uintptr_t>(piece.data()) + kGap;
  std::byte* const first = piece.data() + kGap + (kAlignment - start % kAlignment) % kAlignment;
  pieces[first] = std::move(piece);
  kernels.memory().add(first, std::int64_t(bytes));
  return first;
}

void Device::enqueue(Work work) {
  if (recording) {
    recording->push_back(std::move(work));
  } else {
    work();
  }
}

void Device::launch(const Code& code, dim3 grid, dim3 block, std::vector<std::byte> parameters) {
  if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1) {
    fail("kernel {}: a grid of more than one dimension", code.name);
  }
  enqueue([this, &code, grid, block, parameters = std::move(parameters)] {
    Launch made{code, std::int64_t(grid.x), int(block.x), parameters, kernels.memory(), cells};
    if (counting.is_wanted()) {
      counting.run(made);
    } else {
      run_grid(made);
    }
  });
}

cudaError_t answer(const std::function<cudaError_t()>& body) {
  Device& d = device();
  const std::lock_guard lock(d.mutex);
  cudaError_t status = cudaSuccess;
  try {
    status = body();
  } catch (const Fault& fault) {
    d.text = std::string("[ptx] ") + fault.what();
    status = cudaErrorLaunchFailure;
  }
  if (status != cudaSuccess) d.last = status;
  return status;
}

}  // namespace keel::ptx
