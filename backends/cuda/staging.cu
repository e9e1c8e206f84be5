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

class OneStream : public SmallStagingDevice {
 public:
  explicit OneStream(cudaStream_t work) : work_(work) {
    KEEL_CUDA_CALL(cudaMallocHost(&pinned_, 2 * kHalf));
    for (cudaEvent_t& event : free_) make_event(event);
  }
  ~OneStream() override {
    for (cudaEvent_t event : free_) succeeded(cudaEventDestroy(event));
    succeeded(cudaFreeHost(pinned_));
  }
  OneStream(const OneStream&) = delete;
  OneStream& operator=(const OneStream&) = delete;

  std::byte* pinned() override { return pinned_; }
  void put(std::byte* dst, std::size_t offset, std::size_t bytes) override {
    KEEL_CUDA_CALL(cudaMemcpyAsync(dst, pinned_ + offset, bytes, cudaMemcpyHostToDevice, work_));
  }
  void leave(int half) override { KEEL_CUDA_CALL(cudaEventRecord(free_[half], work_)); }
  void wait_free(int half) override { KEEL_CUDA_CALL(cudaEventSynchronize(free_[half])); }

 private:
  cudaStream_t work_;
  std::byte* pinned_ = nullptr;
  cudaEvent_t free_[2] = {};
};

}  // namespace

Uploads::Uploads(cudaStream_t work) : work_(work) {}
Uploads::~Uploads() = default;

void Uploads::upload(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (bytes > kMostSmall) {
    if (!large_) large_ = std::make_unique<Staging>(std::make_unique<TwoStreams>(work_), kHalf);
    return large_->upload(dst, src, bytes);
  }
  if (!small_) small_ = std::make_unique<SmallStaging>(std::make_unique<OneStream>(work_), kHalf);
  small_->upload(dst, src, bytes);
}

}  // namespace keel::cuda
