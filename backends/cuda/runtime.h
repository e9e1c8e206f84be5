// The device's memory, copies and recorded steps. Two implementations: runtime.cu over CUDA's
// runtime, emulator/runtime.cpp over the host's memory.
//
// Errors of CUDA become Error{kCheckFailed} with expression, file and line; out of memory
// Error{kMemory} with the bytes asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backends/cuda/backend.h"

#ifndef KEEL_CUDA_EMULATED
#include <cuda_runtime.h>
#define KEEL_CUDA_CALL(call) ::keel::cuda::expect(call, #call, __FILE__, __LINE__)
#endif

namespace keel::cuda {

// Throws Error{kBackendMissing} saying what is missing when no device can be used.
void require_device();
// For tests: fills memory that is allocated from now on with another byte than 0, so that a kernel
// shows when it reads what none has written.
void fill_new_memory(std::byte byte);

// One backend's device: its number, the stream that all of the backend's work goes to, in order,
// and how its products round. Made by std::make_shared, since readbacks keep it.
class Device : public std::enable_shared_from_this<Device> {
 public:
  // Throws Error{kBackendMissing} when it cannot be used.
  explicit Device(const Options& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int number() const { return options_.device; }
  // Whether products planned for it may round their factors to tf32.
  bool tf32() const { return options_.tf32; }
  // "NVIDIA H200, compute capability 9.0, CUDA 13.0".
  std::string text() const;

  // Zero-filled, aligned to 256 bytes.
  std::byte* allocate(std::int64_t bytes);
  void release(std::byte* memory) noexcept;
  // Copies after the work before it; `src` may change as soon as the call returns.
  void upload(std::byte* dst, const void* src, std::int64_t bytes);
  // Returns when the copy, and all work before it, is done.
  void download(void* dst, const std::byte* src, std::int64_t bytes);
  // Memory of the host that the device copies to after the work before it.
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes);
  // Copies within the device.
  void copy(std::byte* dst, const std::byte* src, std::int64_t bytes);
  // Waits for all work.
  void synchronize();
  // What `body` keeps the device busy for, by the device's clock, after all work before it and with
  // its L2 cache filled with something else.
  double seconds(const std::function<void()>& body);
  // One launch that does what the kernels would, which are called once and do nothing yet: a CUDA
  // graph. It must not outlive the device.
  Kernel record(std::span<const Kernel> kernels);

  // What the device's libraries keep for it, by library; each makes its own when it is first asked.
  enum Library { kProducts, kConvolutions, kLibraries };
  std::shared_ptr<void>& library(Library which) { return libraries_[which]; }
#ifndef KEEL_CUDA_EMULATED
  cudaStream_t stream() const { return stream_; }
#endif

  struct Parts;  // what an implementation needs besides
  Parts& parts() { return *parts_; }

 private:
  Options options_;
#ifndef KEEL_CUDA_EMULATED
  cudaStream_t stream_ = nullptr;
#endif
  std::unique_ptr<Parts> parts_;
  std::array<std::shared_ptr<void>, kLibraries> libraries_;
};

// While it lives, nodes are prepared and kernels are started for this device by this thread.
class OnDevice {
 public:
  explicit OnDevice(Device& device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  Device* former_;
};

// That device. Throws Error{kCheckFailed} where there is none: a kernel was called by nobody's run.
Device& current_device();

#ifndef KEEL_CUDA_EMULATED
// Says of a call that failed nothing but that it did: its complaint is no longer CUDA's last one,
// which the next launch would report as its own.
bool succeeded(cudaError_t status);
// Throws unless the call succeeded; see `succeeded`.
void expect(cudaError_t status, const char* call, const char* file, int line);
#endif

}  // namespace keel::cuda
