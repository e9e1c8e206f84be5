// The device through CUDA's runtime library.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cuda/runtime.h"
#include "src/core/error.h"

namespace keel::cuda {
namespace {

// Copies go through pinned memory, in parts of this size, so that they overlap with the host's
// work.
constexpr std::size_t kStaging = 4 << 20;

// Pinned memory in two halves: one is filled while the device still reads the other.
struct Staging {
  Staging() {
    KEEL_CUDA_CALL(cudaMallocHost(&memory, 2 * kStaging));
    for (cudaEvent_t& event : free)
      KEEL_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }

  std::byte* memory = nullptr;
  cudaEvent_t free[2];  // reached when the device has read the half
  std::size_t used = 0;
  int half = 0;
};

// Memory of `bytes` in the pinned half that is being filled.
std::byte* stage(std::size_t bytes) {
  static Staging staging;
  if (staging.used + bytes > kStaging) {
    KEEL_CUDA_CALL(cudaEventRecord(staging.free[staging.half], stream()));
    staging.half ^= 1;
    staging.used = 0;
    KEEL_CUDA_CALL(cudaEventSynchronize(staging.free[staging.half]));
  }
  std::byte* const place = staging.memory + std::size_t(staging.half) * kStaging + staging.used;
  staging.used += (bytes + 63) / 64 * 64;
  return place;
}

std::byte& new_memory() {
  static std::byte byte{0};
  return byte;
}

// Two events, and memory of twice the L2 cache's size to fill it with.
struct Stopwatch {
  Stopwatch() {
    cudaDeviceProp properties{};
    KEEL_CUDA_CALL(cudaGetDeviceProperties(&properties, 0));
    bytes = 2 * std::size_t(properties.l2CacheSize);
    KEEL_CUDA_CALL(cudaMalloc(&filler, bytes));
    for (cudaEvent_t* event : {&start, &end}) KEEL_CUDA_CALL(cudaEventCreate(event));
  }

  void* filler = nullptr;
  std::size_t bytes = 0;
  cudaEvent_t start = nullptr, end = nullptr;
};

// Pinned memory, and an event after the last copy to it.
class PinnedReadback : public Readback {
 public:
  explicit PinnedReadback(std::int64_t bytes) {
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
                                   cudaMemcpyDeviceToHost, stream()));
    KEEL_CUDA_CALL(cudaEventRecord(arrival_, stream()));
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
  std::byte* memory_ = nullptr;
  cudaEvent_t arrival_ = nullptr;
};

struct Graph {
  ~Graph() { succeeded(cudaGraphExecDestroy(exec)); }
  cudaGraphExec_t exec = nullptr;
};

cudaGraph_t capture(std::span<const Kernel> kernels) {
  cudaGraph_t graph = nullptr;
  KEEL_CUDA_CALL(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
  try {
    for (const Kernel& kernel : kernels) kernel();
  } catch (...) {
    succeeded(cudaStreamEndCapture(stream(), &graph));
    if (graph) succeeded(cudaGraphDestroy(graph));
    throw;
  }
  KEEL_CUDA_CALL(cudaStreamEndCapture(stream(), &graph));
  return graph;
}

}  // namespace

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

void require_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  std::string why = cudaGetErrorString(status);
  if (succeeded(status)) why = "none is there";
  if (status == cudaErrorInsufficientDriver) {
    why = "there is no NVIDIA driver, or one too old for this build";
  }
  check(status == cudaSuccess && devices > 0, ErrorKind::kBackendMissing,
        "backend cuda: no GPU can be used: {}", why);
}

std::string device_text() {
  cudaDeviceProp properties{};
  int runtime = 0;
  KEEL_CUDA_CALL(cudaGetDeviceProperties(&properties, 0));
  KEEL_CUDA_CALL(cudaRuntimeGetVersion(&runtime));
  return fmt::format("{}, compute capability {}.{}, CUDA {}.{}", properties.name, properties.major,
                     properties.minor, runtime / 1000, runtime % 1000 / 10);
}

cudaStream_t stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    KEEL_CUDA_CALL(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }();
  return stream;
}

std::byte* allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status =
      cudaMallocAsync(&memory, std::size_t(std::max<std::int64_t>(bytes, 1)), stream());
  check(succeeded(status) || status != cudaErrorMemoryAllocation, ErrorKind::kMemory,
        "[cuda] out of device memory: {} bytes were asked for", bytes);
  KEEL_CUDA_CALL(status);
  KEEL_CUDA_CALL(cudaMemsetAsync(memory, int(new_memory()), std::size_t(bytes), stream()));
  return static_cast<std::byte*>(memory);
}

void fill_new_memory(std::byte byte) { new_memory() = byte; }

void release(std::byte* memory) noexcept { succeeded(cudaFreeAsync(memory, stream())); }

void upload(std::byte* dst, const void* src, std::int64_t bytes) {
  const auto* const from = static_cast<const std::byte*>(src);
  const auto size = std::size_t(bytes);
  for (std::size_t done = 0; done < size; done += kStaging) {
    const std::size_t part = std::min(size - done, kStaging);
    const void* const staged = std::memcpy(stage(part), from + done, part);
    KEEL_CUDA_CALL(cudaMemcpyAsync(dst + done, staged, part, cudaMemcpyHostToDevice, stream()));
  }
}

void download(void* dst, const std::byte* src, std::int64_t bytes) {
  KEEL_CUDA_CALL(cudaMemcpyAsync(dst, src, std::size_t(bytes), cudaMemcpyDeviceToHost, stream()));
  synchronize();
}

std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) {
  return std::make_unique<PinnedReadback>(bytes);
}

void copy(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  KEEL_CUDA_CALL(cudaMemcpyAsync(dst, src, std::size_t(bytes), cudaMemcpyDeviceToDevice, stream()));
}

void synchronize() { KEEL_CUDA_CALL(cudaStreamSynchronize(stream())); }

double seconds(const std::function<void()>& body) {
  static const Stopwatch stopwatch;
  KEEL_CUDA_CALL(cudaMemsetAsync(stopwatch.filler, 0, stopwatch.bytes, stream()));
  KEEL_CUDA_CALL(cudaEventRecord(stopwatch.start, stream()));
  body();
  KEEL_CUDA_CALL(cudaEventRecord(stopwatch.end, stream()));
  KEEL_CUDA_CALL(cudaEventSynchronize(stopwatch.end));
  float milliseconds = 0;
  KEEL_CUDA_CALL(cudaEventElapsedTime(&milliseconds, stopwatch.start, stopwatch.end));
  return double(milliseconds) * 1e-3;
}

Kernel record(std::span<const Kernel> kernels) {
  const auto recorded = std::make_shared<Graph>();
  cudaGraph_t graph = capture(kernels);
  const cudaError_t status = cudaGraphInstantiate(&recorded->exec, graph, 0);
  succeeded(cudaGraphDestroy(graph));
  KEEL_CUDA_CALL(status);
  return [recorded] { KEEL_CUDA_CALL(cudaGraphLaunch(recorded->exec, stream())); };
}

}  // namespace keel::cuda
