// The device that the preloaded library plays: memory, one clock of work, kernels, the last error.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>
#include <vector>

#include "tests/ptx/cuda/counting.h"
#include "tests/ptx/cuda/kernels.h"

// The library's own names stay its own, since it is loaded before the program; only CUDA's are
// seen.
#define KEEL_PTX_API extern "C" __attribute__((visibility("default")))

namespace keel::ptx {

using Work = std::function<void()>;

// All its functions are called by one thread at a time.
struct Device {
  Kernels kernels;
  GlobalCells cells;
  Counting counting;
  std::map<std::byte*, std::vector<std::byte>> pieces;
  std::vector<Work>* recording = nullptr;  // while a stream is captured
  cudaError_t last = cudaSuccess;
  std::string text;  // what the last fault said
  std::recursive_mutex mutex;

  std::byte* allocate(std::size_t bytes);
  // Does the work now or, while a stream is captured, whenever its graph is launched.
  void enqueue(Work work);
  void launch(const Code& code, dim3 grid, dim3 block, std::vector<std::byte> parameters);
};

Device& device();

// Calls what a function of CUDA has to do. A Fault becomes cudaErrorLaunchFailure, whose text
// cudaGetErrorString then gives.
cudaError_t answer(const std::function<cudaError_t()>& body);

}  // namespace keel::ptx
