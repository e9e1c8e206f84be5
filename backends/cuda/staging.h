// How large data come from the host: it writes them into pinned memory, one stream of the device
// fetches them from there, while another may still work, and that one puts them at their place when
// it comes to it. Both memories have two halves: while one is on its way, the other is written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "backends/cuda/runtime.h"

namespace keel::cuda {

// Staging asks this of a device. A half is 0 or 1; it begins at half * bytes of a half in the
// host's pinned memory, and at the same offset in memory of the device.
class StagingDevice {
 public:
  virtual ~StagingDevice() = default;
  virtual std::byte* pinned() = 0;
  // The stream of copies fetches these bytes of the half from pinned memory.
  virtual void fetch(int half, std::size_t offset, std::size_t bytes) = 0;
  // The stream of work waits for all that is fetched of the half so far, then copies these bytes.
  virtual void put(std::byte* dst, int half, std::size_t offset, std::size_t bytes) = 0;
  // The half is free when the stream of work has come to here.
  virtual void leave(int half) = 0;
  // The stream of copies waits until the half, as it was left last, is free.
  virtual void let_fetch_wait(int half) = 0;
  // The host waits for all that is fetched of the half so far.
  virtual void wait_fetched(int half) = 0;
};

class Staging {
 public:
  Staging(std::unique_ptr<StagingDevice> device, std::size_t bytes_of_half)
      : device_(std::move(device)), bytes_of_half_(bytes_of_half) {}

  // `src` may change as soon as the call returns. The host waits only where more than four halves
  // are on their way.
  void upload(std::byte* dst, const std::byte* src, std::size_t bytes) {
    while (bytes > 0) {
      if (used_ == bytes_of_half_) next_half();
      const std::size_t part = std::min(bytes, bytes_of_half_ - used_);
      const std::size_t offset = std::size_t(half_) * bytes_of_half_ + used_;
      std::memcpy(device_->pinned() + offset, src, part);
      device_->fetch(half_, offset, part);
      device_->put(dst, half_, offset, part);
      dst += part, src += part, bytes -= part;
      used_ = std::min(bytes_of_half_, (used_ + part + kAligned - 1) / kAligned * kAligned);
    }
  }

 private:
  static constexpr std::size_t kAligned = 256;

  void next_half() {
    device_->leave(half_);
    half_ = 1 - half_;
    used_ = 0;
    device_->let_fetch_wait(half_);
    device_->wait_fetched(half_);
  }

  std::unique_ptr<StagingDevice> device_;
  std::size_t bytes_of_half_, used_ = 0;
  int half_ = 0;
};

// SmallStaging asks this of a device, of which it uses only the stream of work. The pinned memory
// has two halves here as well.
class SmallStagingDevice {
 public:
  virtual ~SmallStagingDevice() = default;
  virtual std::byte* pinned() = 0;
  // The stream of work copies these bytes from pinned memory.
  virtual void put(std::byte* dst, std::size_t offset, std::size_t bytes) = 0;
  // The half is free when the stream of work has come to here.
  virtual void leave(int half) = 0;
  // The host waits until the half, if it was ever left, is free.
  virtual void wait_free(int half) = 0;
};

// How small data come from the host: from pinned memory to their place at once, for a second
// stream would cost more time than it saves.
class SmallStaging {
 public:
  SmallStaging(std::unique_ptr<SmallStagingDevice> device, std::size_t bytes_of_half)
      : device_(std::move(device)), bytes_of_half_(bytes_of_half) {}

  // At most `bytes_of_half`. `src` may change as soon as the call returns.
  void upload(std::byte* dst, const std::byte* src, std::size_t bytes) {
    if (used_ + bytes > bytes_of_half_) {
      device_->leave(half_);
      half_ = 1 - half_;
      used_ = 0;
      device_->wait_free(half_);
    }
    const std::size_t offset = std::size_t(half_) * bytes_of_half_ + used_;
    std::memcpy(device_->pinned() + offset, src, bytes);
    device_->put(dst, offset, bytes);
    used_ += (bytes + kAligned - 1) / kAligned * kAligned;
  }

 private:
  static constexpr std::size_t kAligned = 64;

  std::unique_ptr<SmallStagingDevice> device_;
  std::size_t bytes_of_half_, used_ = 0;
  int half_ = 0;
};

#ifndef KEEL_CUDA_EMULATED
// All that a device gets from the host, on its stream of work.
class Uploads {
 public:
  explicit Uploads(cudaStream_t work);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  void upload(std::byte* dst, const std::byte* src, std::size_t bytes);

 private:
  cudaStream_t work_;
  std::unique_ptr<SmallStaging> small_;  // made when the first copy needs it
  std::unique_ptr<Staging> large_;       // the same
};
#endif

}  // namespace keel::cuda
