// Copies from the host on a GPU: two streams for large ones, one for small ones.
#include "backends/cuda/staging.h"

namespace keel::cuda {
namespace {

constexpr std::size_t kHalf = 4 << 20;
// A copy of so many bytes takes about as long as a second copy, within the device, does to start.
constexpr std::size_t kMostSmall = 64 << 10;

void make_event(cudaEvent_t& event) {
  KEEL_CUDA_CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

class TwoStreams : public StagingDevice {
 public:
  explicit TwoStreams(cudaStream_t work) : work_(work) {
    KEEL_CUDA_CALL(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
    KEEL_CUDA_CALL(cudaMallocHost(&pinned_, 2 * kHalf));
    KEEL_CUDA_CALL(cudaMalloc(&ahead_, 2 * kHalf));
    for (int half : {0, 1}) make_event(fetched_[half]), make_event(free_[half]);
  }
  ~TwoStreams() override {
    succeeded(cudaStreamSynchronize(copies_));
    for (int half : {0, 1}) {
      succeeded(cudaEventDestroy(fetched_[half]));
      succeeded(cudaEventDestroy(free_[half]));
    }
    succeeded(cudaFree(ahead_));
    succeeded(cudaFreeHost(pinned_));
    succeeded(cudaStreamDestroy(copies_));
  }
  TwoStreams(const TwoStreams&) = delete;
  TwoStreams& operator=(const TwoStreams&) = delete;

  std::byte* pinned() override { return pinned_; }
  void fetch(int half, std::size_t offset, std::size_t bytes) override {
    KEEL_CUDA_CALL(
        cudaMemcpyAsync(ahead_ + offset, pinned_ + offset, bytes, cudaMemcpyHostToDevice, copies_));
    KEEL_CUDA_CALL(cudaEventRecord(fetched_[half], copies_));
  }
  void put(std::byte* dst, int half, std::size_t offset, std::size_t bytes) override {
    KEEL_CUDA_CALL(cudaStreamWaitEvent(work_, fetched_[half], 0));
    KEEL_CUDA_CALL(cudaMemcpyAsync(dst, ahead_ + offset, bytes, cudaMemcpyDeviceToDevice, work_));
  }
  void leave(int half) override { KEEL_CUDA_CALL(cudaEventRecord(free_[half], work_)); }
  void let_fetch_wait(int half) override {
    KEEL_CUDA_CALL(cudaStreamWaitEvent(copies_, free_[half], 0));
  }
  void wait_fetched(int half) override { KEEL_CUDA_CALL(cudaEventSynchronize(fetched_[half])); }

 private:
  cudaStream_t work_, copies_ = nullptr;
  std::byte *pinned_ = nullptr, *ahead_ = nullptr;
  cudaEvent_t fetched_[2] = {}, free_[2] = {};
};

}  // namespace

// Pinned memory in two halves: one is filled while the device still reads the other.
struct Uploads::Small {
  Small() {
    KEEL_CUDA_CALL(cudaMallocHost(&memory, 2 * kHalf));
    for (cudaEvent_t& event : free) make_event(event);
  }
  ~Small() {
    for (cudaEvent_t event : free) succeeded(cudaEventDestroy(event));
    succeeded(cudaFreeHost(memory));
  }
  Small(const Small&) = delete;
  Small& operator=(const Small&) = delete;

  // Memory of `bytes` in the half that is being filled, for a copy on this stream.
  std::byte* place(std::size_t bytes, cudaStream_t stream) {
    if (used + bytes > kHalf) {
      KEEL_CUDA_CALL(cudaEventRecord(free[half], stream));
      half ^= 1;
      used = 0;
      KEEL_CUDA_CALL(cudaEventSynchronize(free[half]));
    }
    std::byte* const first = memory + std::size_t(half) * kHalf + used;
    used += (bytes + 63) / 64 * 64;
    return first;
  }

  std::byte* memory = nullptr;
  cudaEvent_t free[2];  // reached when the device has read the half
  std::size_t used = 0;
  int half = 0;
};

Uploads::Uploads(cudaStream_t work) : work_(work) {}
Uploads::~Uploads() = default;

void Uploads::upload(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (bytes > kMostSmall) {
    if (!large_) large_ = std::make_unique<Staging>(std::make_unique<TwoStreams>(work_), kHalf);
    return large_->upload(dst, src, bytes);
  }
  if (!small_) small_ = std::make_unique<Small>();
  const void* const staged = std::memcpy(small_->place(bytes, work_), src, bytes);
  KEEL_CUDA_CALL(cudaMemcpyAsync(dst, staged, bytes, cudaMemcpyHostToDevice, work_));
}

}  // namespace keel::cuda
