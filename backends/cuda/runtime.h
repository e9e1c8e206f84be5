// The device's memory, copies and recorded steps. Two implementations: runtime.cu over CUDA's
// runtime, emulator/runtime.cpp over the host's memory.
//
// All work goes to one stream, in order. Errors of CUDA become Error{kCheckFailed} with expression,
// file and line; out of memory Error{kMemory} with the bytes asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/runtime/backend.h"

#ifndef KEEL_CUDA_EMULATED
#include <cuda_runtime.h>
#define KEEL_CUDA_CALL(call) ::keel::cuda::expect(call, #call, __FILE__, __LINE__)
#endif

namespace keel::cuda {

// Throws Error{kBackendMissing} saying what is missing when no device can be used.
void require_device();
// "NVIDIA H200, compute capability 9.0, CUDA 13.0".
std::string device_text();

// Zero-filled, aligned to 256 bytes.
std::byte* allocate(std::int64_t bytes);
// For tests: fills memory that is allocated from now on with another byte than 0, so that a kernel
// shows when it reads what none has written.
void fill_new_memory(std::byte byte);
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
// graph.
Kernel record(std::span<const Kernel> kernels);

#ifndef KEEL_CUDA_EMULATED
cudaStream_t stream();
// Says of a call that failed nothing but that it did: its complaint is no longer CUDA's last one,
// which the next launch would report as its own.
bool succeeded(cudaError_t status);
// Throws unless the call succeeded; see `succeeded`.
void expect(cudaError_t status, const char* call, const char* file, int line);
#endif

}  // namespace keel::cuda
