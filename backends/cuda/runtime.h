// The device's memory, copies and recorded steps. Two implementations: runtime.cu over CUDA's
// runtime, emulator/runtime.cpp over the host's memory.
//
// Errors of CUDA become Error{kCheckFailed} with expression, file and line; out of memory
// Error{kMemory} with the bytes asked for and those that are free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backends/cuda/backend.h"
#include "backends/cuda/dependencies.h"

#ifndef KEEL_CUDA_EMULATED
#include <cuda_runtime.h>
#define KEEL_CUDA_CALL(call) ::keel::cuda::expect(call, #call, __FILE__, __LINE__)
#endif

namespace keel::cuda {

#ifdef KEEL_CUDA_EMULATED
namespace simt {
struct Stream;
}
using Stream = simt::Stream*;
#else
using Stream = cudaStream_t;
#endif

// For tests: fills memory allocated from now on with a byte other than 0, to reveal kernels that
// read memory before anything has written it.
void fill_new_memory(std::byte byte);

// The device of one backend: its number, the one stream that takes all of the backend's work, and
// the rounding of its products. The stream executes in order. A recorded step is one piece of its
// work, within which kernels run as their dependencies allow. Create a device by std::make_shared:
// readbacks share it.
class Device : public std::enable_shared_from_this<Device> {
 public:
  // Throws Error{kBackendMissing} when it cannot be used.
  explicit Device(const Options& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int number() const { return options_.device; }
  // Whether products planned for this device may round their factors to tf32.
  bool tf32() const { return options_.tf32; }
  // "NVIDIA H200, 132 multiprocessors, compute capability 9.0, CUDA 13.0, driver for CUDA 13.1".
  std::string text() const;

  // Zero-filled, aligned to 256 bytes.
  std::byte* allocate(std::int64_t bytes);
  void release(std::byte* memory) noexcept;
  // Copies after all earlier work; `src` may change as soon as the call returns.
  void upload(std::byte* dst, const void* src, std::int64_t bytes);
  // Copies, and returns when the copy and all earlier work are done.
  void download(void* dst, const std::byte* src, std::int64_t bytes);
  // Allocates host memory that the device copies to after earlier work.
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes);
  // Copies within the device.
  void copy(std::byte* dst, const std::byte* src, std::int64_t bytes);
  // Waits for all work.
  void synchronize();
  // The time that the device is busy with `body`, by the device's clock, after all earlier work is
  // done and with other data in its L2 cache.
  double seconds(const std::function<void()>& body);
  // Makes one launch, a CUDA graph, that does the work of the kernels, of which each waits for no
  // others than `after` says. They are called once, but without effect yet. The launch must not
  // outlive the device.
  Kernel record(std::span<const Kernel> kernels, const Dependencies& after);

  // Data that a library keeps for the device; each library creates its own on first use.
  enum Library { kProducts, kConvolutions, kLibraries };
  std::shared_ptr<void>& library(Library which) { return libraries_[which]; }
  Stream stream() const { return stream_; }

  struct Parts;  // further data of an implementation
  Parts& parts() { return *parts_; }

 private:
  Options options_;
  Stream stream_ = nullptr;  // the emulator needs none
  std::unique_ptr<Parts> parts_;
  std::array<std::shared_ptr<void>, kLibraries> libraries_;
};

// Where a thread starts kernels: a device by its number, and one of its streams. `device` is null
// where the stream is a caller's.
struct Place {
  int number = 0;
  Stream stream = nullptr;
  Device* device = nullptr;
};

// While an object lives, this thread prepares nodes and starts kernels for this device.
class OnDevice {
 public:
  explicit OnDevice(Device& device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const Place* former_;
  Place place_;
};

// While an object lives, this thread starts kernels on a caller's stream of a device. It creates
// nothing, and afterwards the thread has the current device that it had before.
class OnStream {
 public:
  OnStream(int device, Stream stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  const Place* former_;
  Place place_;
  int former_number_ = 0;
};

// The device of this thread's OnDevice. Throws Error{kCheckFailed} if there is none.
Device& current_device();
// The stream of this thread's innermost OnDevice or OnStream. Throws as current_device() does.
Stream current_stream();

// Throws Error{kBackendMissing} unless the device of that number can be used.
void require_device(int number);
// Says why a kernel on a device cannot use what lies at an address: it is the host's or another
// device's. Empty if it can, as far as is known.
std::string address_refusal(int device, const void* address);

#ifndef KEEL_CUDA_EMULATED
// Whether a call succeeded. If not, it also clears CUDA's last error, which the next launch would
// otherwise report as its own.
bool succeeded(cudaError_t status);
// Throws unless the call succeeded; see `succeeded`.
void expect(cudaError_t status, const char* call, const char* file, int line);
// Throws Error{kBackendMissing} unless the current device, of this number, has code for the kernels
// of this build.
void expect_code(int device);
// Whether the device can allocate in the order of a stream; not every virtual GPU can.
bool has_pools(int device);
#endif

}  // namespace keel::cuda
