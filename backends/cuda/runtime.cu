// The device through CUDA's runtime library.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cuda/refusals.h"
#include "backends/cuda/runtime.h"
#include "backends/cuda/staging.h"
#include "src/core/error.h"

namespace keel::cuda {
namespace {

std::byte& new_memory() {
  static std::byte byte{0};
  return byte;
}

// Reads memory of zeros, which makes the L2 cache hold it. Memory that is written would do so, too,
// but the kernel after it would have to wait until it has been written back.
__global__ void read_zeros(const float4* memory, std::size_t count, float* never) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    sum += memory[i].x;
  }
  if (sum != 0) *never = sum;
}

// Two events, and memory of twice the L2 cache's size to fill it with.
struct Stopwatch {
  Stopwatch(int device, cudaStream_t stream) {
    cudaDeviceProp properties{};
    KEEL_CUDA_CALL(cudaGetDeviceProperties(&properties, device));
    count = 2 * std::size_t(properties.l2CacheSize) / sizeof(float4);
    blocks = unsigned(8 * properties.multiProcessorCount);
    KEEL_CUDA_CALL(cudaMalloc(&filler, count * sizeof(float4)));
    KEEL_CUDA_CALL(cudaMemsetAsync(filler, 0, count * sizeof(float4), stream));
    for (cudaEvent_t* event : {&start, &end}) KEEL_CUDA_CALL(cudaEventCreate(event));
  }
  ~Stopwatch() {
    for (cudaEvent_t event : {start, end}) succeeded(cudaEventDestroy(event));
    succeeded(cudaFree(filler));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Takes everything else out of the cache.
  void fill_cache(cudaStream_t stream) const {
    read_zeros<<<blocks, 256, 0, stream>>>(filler, count, &filler->x);
    KEEL_CUDA_CALL(cudaGetLastError());
  }

  float4* filler = nullptr;
  std::size_t count = 0;
  unsigned blocks = 0;
  cudaEvent_t start = nullptr, end = nullptr;
};

// Pinned memory, and an event after the last copy to it.
class PinnedReadback : public Readback {
 public:
  PinnedReadback(std::shared_ptr<Device> device, std::int64_t bytes) : device_(std::move(device)) {
    KEEL_CUDA_CALL(cudaEventCreateWithFlags(&arrival_, cudaEventDisableTiming));
    KEEL_CUDA_CALL(cudaMallocHost(&memory_, std::size_t(bytes)));
  }
  ~PinnedReadback() override {
    succeeded(cudaEventSynchronize(arrival_));
    succeeded(cudaEventDestroy(arrival_));
    succeeded(cudaFreeHost(memory_));
  }
  PinnedReadback(const PinnedReadback&) = delete;
  PinnedReadback& operator=(const PinnedReadback&) = delete;

  void receive(std::int64_t offset, const void* src, std::int64_t bytes) override {
    KEEL_CUDA_CALL(cudaMemcpyAsync(memory_ + offset, src, std::size_t(bytes),
                                   cudaMemcpyDeviceToHost, device_->stream()));
    KEEL_CUDA_CALL(cudaEventRecord(arrival_, device_->stream()));
  }
  bool is_complete() const override {
    const cudaError_t status = cudaEventQuery(arrival_);
    const bool is_there = succeeded(status);
    if (status != cudaErrorNotReady) KEEL_CUDA_CALL(status);
    return is_there;
  }
  const std::byte* wait() override {
    KEEL_CUDA_CALL(cudaEventSynchronize(arrival_));
    return memory_;
  }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  cudaEvent_t arrival_ = nullptr;
};

struct Graph {
  ~Graph() { succeeded(cudaGraphExecDestroy(exec)); }
  cudaGraphExec_t exec = nullptr;
};

// The nodes that the next captured node waits for. Since CUDA 13 the functions take data of edges
// as well, of which there are none here.
std::vector<cudaGraphNode_t> captured_last(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  KEEL_CUDA_CALL(
      cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
#else
  KEEL_CUDA_CALL(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &count));
#endif
  return {nodes, nodes + count};
}

// Makes the next node that is captured wait for these nodes, and for no others.
void let_next_wait_for(std::vector<cudaGraphNode_t>& nodes, cudaStream_t stream) {
  constexpr unsigned kNoOthers = cudaStreamSetCaptureDependencies;
#if CUDART_VERSION >= 13000
  KEEL_CUDA_CALL(
      cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nullptr, nodes.size(), kNoOthers));
#else
  KEEL_CUDA_CALL(
      cudaStreamUpdateCaptureDependencies(stream, nodes.data(), nodes.size(), kNoOthers));
#endif
}

// Captures the kernels in their order; in the graph each waits for those that `after` names.
void capture_kernels(std::span<const Kernel> kernels, const Dependencies& after,
                     cudaStream_t stream) {
  std::vector<std::vector<cudaGraphNode_t>> last(kernels.size());  // nodes of each kernel
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::vector<cudaGraphNode_t> waits_for;
    for (const int j : after[k]) {
      const auto& nodes = last[std::size_t(j)];
      waits_for.insert(waits_for.end(), nodes.begin(), nodes.end());
    }
    std::ranges::sort(waits_for);
    const auto repeated = std::ranges::unique(waits_for);
    waits_for.erase(repeated.begin(), repeated.end());
    let_next_wait_for(waits_for, stream);
    kernels[k]();
    last[k] = captured_last(stream);
  }
}

cudaGraph_t capture(std::span<const Kernel> kernels, const Dependencies& after,
                    cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  KEEL_CUDA_CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    capture_kernels(kernels, after, stream);
  } catch (...) {
    succeeded(cudaStreamEndCapture(stream, &graph));
    if (graph) succeeded(cudaGraphDestroy(graph));
    throw;
  }
  KEEL_CUDA_CALL(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// That of the innermost OnDevice or OnStream of this thread.
const Place*& innermost() {
  thread_local const Place* place = nullptr;
  return place;
}

const Place& current_place() {
  check(innermost() != nullptr, ErrorKind::kCheckFailed, "[cuda] a kernel outside of every run");
  return *innermost();
}

}  // namespace

struct Device::Parts {
  bool has_pools = false;  // not on every virtual GPU
  std::optional<Uploads> uploads;
  std::optional<Stopwatch> stopwatch;  // made when it is needed
};

bool succeeded(cudaError_t status) {
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess;
}

void expect(cudaError_t status, const char* call, const char* file, int line) {
  if (succeeded(status)) return;
  const ErrorKind kind =
      status == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kCheckFailed;
  fail(kind, "[cuda] {}: {} ({}:{})", call, cudaGetErrorString(status), file, line);
}

OnDevice::OnDevice(Device& device)
    : former_(innermost()), place_{device.number(), device.stream(), &device} {
  KEEL_CUDA_CALL(cudaSetDevice(device.number()));
  innermost() = &place_;
}

OnDevice::~OnDevice() {
  innermost() = former_;
  if (former_ != nullptr) succeeded(cudaSetDevice(former_->number));
}

OnStream::OnStream(int device, Stream stream)
    : former_(innermost()), place_{device, stream, nullptr} {
  KEEL_CUDA_CALL(cudaGetDevice(&former_number_));
  if (former_number_ != device) KEEL_CUDA_CALL(cudaSetDevice(device));
  innermost() = &place_;
}

OnStream::~OnStream() {
  innermost() = former_;
  if (former_number_ != place_.number) succeeded(cudaSetDevice(former_number_));
}

Device& current_device() {
  Device* device = current_place().device;
  check(device != nullptr, ErrorKind::kCheckFailed, "[cuda] a caller's stream has no device here");
  return *device;
}

Stream current_stream() { return current_place().stream; }

Device::Device(const Options& options) : options_(options), parts_(std::make_unique<Parts>()) {
  require_device(number());
  const OnDevice here(*this);
  expect_code(number());
  parts_->has_pools = has_pools(number());
  KEEL_CUDA_CALL(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

Device::~Device() {
  succeeded(cudaSetDevice(number()));
  succeeded(cudaStreamSynchronize(stream_));
  libraries_ = {};
  parts_.reset();
  succeeded(cudaStreamDestroy(stream_));
}

std::byte* Device::allocate(std::int64_t bytes) {
  const OnDevice here(*this);
  const auto size = std::size_t(std::max<std::int64_t>(bytes, 1));
  void* memory = nullptr;
  const cudaError_t status =
      parts_->has_pools ? cudaMallocAsync(&memory, size, stream_) : cudaMalloc(&memory, size);
  if (!succeeded(status) && status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    succeeded(cudaMemGetInfo(&free, &total));
    fail(ErrorKind::kMemory, "[cuda] {}", memory_refusal(bytes, free, total));
  }
  KEEL_CUDA_CALL(status);
  const cudaError_t filled =
      cudaMemsetAsync(memory, int(new_memory()), std::size_t(bytes), stream_);
  if (!succeeded(filled)) release(static_cast<std::byte*>(memory));
  KEEL_CUDA_CALL(filled);
  return static_cast<std::byte*>(memory);
}

void fill_new_memory(std::byte byte) { new_memory() = byte; }

// cudaFree waits for the device, so that no kernel still uses the memory.
void Device::release(std::byte* memory) noexcept {
  succeeded(parts_->has_pools ? cudaFreeAsync(memory, stream_) : cudaFree(memory));
}

void Device::upload(std::byte* dst, const void* src, std::int64_t bytes) {
  const OnDevice here(*this);
  if (!parts_->uploads) parts_->uploads.emplace(stream_);
  parts_->uploads->upload(dst, static_cast<const std::byte*>(src), std::size_t(bytes));
}

void Device::download(void* dst, const std::byte* src, std::int64_t bytes) {
  KEEL_CUDA_CALL(cudaMemcpyAsync(dst, src, std::size_t(bytes), cudaMemcpyDeviceToHost, stream_));
  synchronize();
}

std::unique_ptr<Readback> Device::allocate_readback(std::int64_t bytes) {
  const OnDevice here(*this);
  return std::make_unique<PinnedReadback>(shared_from_this(), bytes);
}

void Device::copy(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  KEEL_CUDA_CALL(cudaMemcpyAsync(dst, src, std::size_t(bytes), cudaMemcpyDeviceToDevice, stream_));
}

void Device::synchronize() { KEEL_CUDA_CALL(cudaStreamSynchronize(stream_)); }

double Device::seconds(const std::function<void()>& body) {
  const OnDevice here(*this);
  if (!parts_->stopwatch) parts_->stopwatch.emplace(number(), stream_);
  const Stopwatch& stopwatch = *parts_->stopwatch;
  stopwatch.fill_cache(stream_);
  KEEL_CUDA_CALL(cudaEventRecord(stopwatch.start, stream_));
  body();
  KEEL_CUDA_CALL(cudaEventRecord(stopwatch.end, stream_));
  KEEL_CUDA_CALL(cudaEventSynchronize(stopwatch.end));
  float milliseconds = 0;
  KEEL_CUDA_CALL(cudaEventElapsedTime(&milliseconds, stopwatch.start, stopwatch.end));
  return double(milliseconds) * 1e-3;
}

Kernel Device::record(std::span<const Kernel> kernels, const Dependencies& after) {
  const OnDevice here(*this);
  const auto recorded = std::make_shared<Graph>();
  cudaGraph_t graph = capture(kernels, after, stream_);
  const cudaError_t status = cudaGraphInstantiate(&recorded->exec, graph, 0);
  succeeded(cudaGraphDestroy(graph));
  KEEL_CUDA_CALL(status);
  return [recorded, stream = stream_] { KEEL_CUDA_CALL(cudaGraphLaunch(recorded->exec, stream)); };
}

}  // namespace keel::cuda
