// The functions of CUDA's runtime that keel calls. Work is done at once, but for copies from the
// host (streams.h); what CUDA refuses during a capture is refused here, too.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "tests/ptx/cuda/device.h"
#include "tests/ptx/cuda/streams.h"
#include "tests/ptx/fault.h"

using keel::ptx::answer;
using keel::ptx::begin_work;
using keel::ptx::device;
using keel::ptx::fail;
using keel::ptx::Stream;
using keel::ptx::stream_of;
using keel::ptx::Work;

namespace {

using Graph = std::vector<Work>;
using Clock = std::chrono::steady_clock;

struct Event {
  Clock::time_point time = Clock::now();
  bool is_timed;
  Stream* stream = nullptr;  // on which it was recorded, and where
  std::int64_t place = 0;

  void wait() const {
    if (stream) stream->come_to(place);
  }
};
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

std::byte* bytes_of(void* memory) { return static_cast<std::byte*>(memory); }

// A copy may not leave the pieces of device memory that it names.
void expect_device(const void* memory, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uint64_t>(memory);
  if (bytes && !device().kernels.memory().holds(at, std::int64_t(bytes))) {
    fail("a copy of {} bytes: {}", bytes, device().kernels.memory().whereabouts(at));
  }
}

// The host waits, which it may not while a stream is captured.
cudaError_t waited() {
  return device().recording ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace

KEEL_PTX_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaSetDevice(int number) {
  return answer([&] { return number == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
KEEL_PTX_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  // By the word "emulator" tests know a device that is slow, and choose fewer cases.
  std::strcpy(properties->name, "PTX, on an emulator on the host");
  properties->major = 8;
  properties->l2CacheSize = 1 << 20;
  properties->multiProcessorCount = 108;
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const bool has_pools = attribute == cudaDevAttrMemoryPoolsSupported;
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 8 : has_pools ? 1 : 0;
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

KEEL_PTX_API cudaError_t cudaGetLastError() { return std::exchange(device().last, cudaSuccess); }
KEEL_PTX_API cudaError_t cudaPeekAtLastError() { return device().last; }
KEEL_PTX_API const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorLaunchFailure:
      return device().text.c_str();
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted during a capture";
    default:
      return "an error";
  }
}

KEEL_PTX_API cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return answer([&] {
    *memory = device().allocate(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
KEEL_PTX_API cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  if (device().recording) return answer([] { return cudaErrorStreamCaptureUnsupported; });
  return cudaMalloc(memory, bytes);
}
KEEL_PTX_API cudaError_t cudaFree(void* memory) {
  return answer([&] {
    device().kernels.memory().remove(bytes_of(memory));
    device().pieces.erase(bytes_of(memory));
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return answer([&] {
    begin_work(stream);
    return cudaFree(memory);
  });
}
KEEL_PTX_API cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return answer([&] {
    *memory =
        bytes < std::size_t{1} << 40 ? std::calloc(std::max<std::size_t>(bytes, 1), 1) : nullptr;
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
KEEL_PTX_API cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}
KEEL_PTX_API cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

KEEL_PTX_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return answer([&] {
    if (kind != cudaMemcpyDeviceToHost) expect_device(to, bytes);
    if (kind != cudaMemcpyHostToDevice) expect_device(from, bytes);
    const auto work = [=] { std::memmove(to, from, bytes); };
    if (kind == cudaMemcpyHostToDevice && !device().recording) {
      stream_of(stream).late.push_back(work);
    } else {
      begin_work(stream);
      device().enqueue(work);
    }
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes,
                                         cudaStream_t stream) {
  return answer([&] {
    expect_device(memory, bytes);
    begin_work(stream);
    device().enqueue([=] { std::memset(memory, value, bytes); });
    return cudaSuccess;
  });
}

KEEL_PTX_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new Stream);
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return answer([&] {
    begin_work(stream);
    delete &stream_of(stream);
    return cudaSuccess;
  });
}
// Later work on the stream is done at once, so the event has to be reached now.
KEEL_PTX_API cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  return answer([&] {
    event_of(event).wait();
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer([&] {
    begin_work(stream);
    return waited();
  });
}

KEEL_PTX_API cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return answer([] {
    if (device().recording) return cudaErrorStreamCaptureUnsupported;
    device().recording = new Graph;
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  return answer([&] {
    *graph = reinterpret_cast<cudaGraph_t>(std::exchange(device().recording, nullptr));
    return cudaSuccess;
  });
}
// Work is replayed in the order of its capture, which every graph allows. So nodes are not told
// apart, and no dependency is kept.
KEEL_PTX_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                                  unsigned long long*, cudaGraph_t*,
                                                  const cudaGraphNode_t** nodes,
#if CUDART_VERSION >= 13000
                                                  const cudaGraphEdgeData**,
#endif
                                                  std::size_t* count) {
  static const cudaGraphNode_t none{};
  *status = device().recording ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  *nodes = &none;
  *count = 0;
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*,
#if CUDART_VERSION >= 13000
                                                             const cudaGraphEdgeData*,
#endif
                                                             std::size_t, unsigned) {
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                              unsigned long long) {
  *exec = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return answer([&] {
    begin_work(stream);
    for (const Work& work : *reinterpret_cast<Graph*>(exec)) device().enqueue(work);
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<Graph*>(exec);
  return cudaSuccess;
}

KEEL_PTX_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event =
      reinterpret_cast<cudaEvent_t>(new Event{.is_timed = (flags & cudaEventDisableTiming) == 0});
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
KEEL_PTX_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] {
    if (event_of(event).is_timed) device().counting.note_event();
    event_of(event).time = Clock::now();
    event_of(event).stream = &stream_of(stream);
    event_of(event).place = stream_of(stream).place();
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer([&] {
    event_of(event).wait();
    return cudaSuccess;
  });
}
KEEL_PTX_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer([&] {
    event_of(event).wait();
    return waited();
  });
}
KEEL_PTX_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                              cudaEvent_t end) {
  const auto time = event_of(end).time - event_of(start).time;
  *milliseconds = std::chrono::duration<float, std::milli>(time).count();
  return cudaSuccess;
}
