// Emulates the device's memory and copies with host memory. Every memory block lies between two
// guard strips, whose bytes are checked when the block is read, waited for or released.
#include "backends/cuda/runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "backends/cuda/emulator/simt.h"
#include "src/core/tensor.h"

namespace keel::cuda {
namespace {

constexpr std::int64_t kStrip = 256;  // also the alignment
constexpr std::byte kIntact{0xA5};

constexpr int kDevices = 2;

struct Block {
  AlignedBytes bytes;
  std::byte* first = nullptr;
  std::int64_t size = 0;
  int device = 0;
};

// All blocks, for one thread at a time.
struct Blocks {
  std::mutex mutex;
  std::map<std::byte*, Block> by_address;
};

Blocks& blocks() {
  static Blocks blocks;
  return blocks;
}

std::byte& new_memory() {
  static std::byte byte{0};
  return byte;
}

// The work queued since recording began, and whether it has begun.
struct Recording {
  std::vector<std::function<void()>> work;
  bool is_on = false;
};

void expect_no_recording(Device& device, const char* what);
std::int64_t waits_of(Device& device);

// The slowest device that there could be: nothing arrives before the host waits for the device.
class LateReadback : public Readback {
 public:
  LateReadback(std::shared_ptr<Device> device, std::int64_t bytes)
      : device_(std::move(device)), bytes_(bytes) {}
  void receive(std::int64_t offset, const void* src, std::int64_t bytes) override {
    expect_no_recording(*device_, "a copy to the host");
    check(offset >= 0 && offset + bytes <= bytes_.size(), ErrorKind::kCheckFailed,
          "[emulator] a copy beyond the end of {} bytes", bytes_.size());
    std::memcpy(bytes_.data() + offset, src, std::size_t(bytes));
    sent_ = waits_of(*device_);
  }
  bool is_complete() const override { return waits_of(*device_) > sent_; }
  const std::byte* wait() override {
    if (!is_complete()) device_->synchronize();
    return bytes_.data();
  }

 private:
  std::shared_ptr<Device> device_;
  AlignedBytes bytes_;
  std::int64_t sent_ = -1;  // how often the host had waited; before the first copy it need not
};

bool is_intact(const std::byte* strip) {
  return std::all_of(strip, strip + kStrip, [](std::byte b) { return b == kIntact; });
}

void expect_intact() {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& [first, block] : blocks().by_address) {
    check(is_intact(first - kStrip) && is_intact(first + block.size), ErrorKind::kCheckFailed,
          "[emulator] a kernel wrote outside of {} bytes of device memory", block.size);
  }
}

// That of the innermost OnDevice or OnStream of this thread.
const Place*& innermost() {
  thread_local const Place* place = nullptr;
  return place;
}

const Place& current_place() {
  check(innermost() != nullptr, ErrorKind::kCheckFailed,
        "[emulator] a kernel outside of every run");
  return *innermost();
}

}  // namespace

struct Device::Parts {
  Recording recording;
  std::int64_t waits = 0;  // of the host
};

namespace {

void expect_no_recording(Device& device, const char* what) {
  check(!device.parts().recording.is_on, ErrorKind::kCheckFailed,
        "[emulator] {} while a step is recorded", what);
}

std::int64_t waits_of(Device& device) { return device.parts().waits; }

}  // namespace

int device_count() { return kDevices; }
void fill_new_memory(std::byte byte) { new_memory() = byte; }

void require_device(int number) {
  check(number >= 0 && number < kDevices, ErrorKind::kBackendMissing,
        "device: expected one of the {} that CUDA counts, from 0 on, got {}", kDevices, number);
}

OnDevice::OnDevice(Device& device)
    : former_(innermost()), place_{device.number(), nullptr, &device} {
  innermost() = &place_;
}
OnDevice::~OnDevice() { innermost() = former_; }

OnStream::OnStream(int device, Stream stream)
    : former_(innermost()), place_{device, stream, nullptr} {
  check(stream == nullptr || stream->device == device, ErrorKind::kCheckFailed,
        "[emulator] a kernel of device {} on a stream of device {}", device,
        stream == nullptr ? device : stream->device);
  innermost() = &place_;
}
OnStream::~OnStream() { innermost() = former_; }

Device& current_device() {
  Device* device = current_place().device;
  check(device != nullptr, ErrorKind::kCheckFailed,
        "[emulator] a caller's stream has no device here");
  return *device;
}

Stream current_stream() { return current_place().stream; }

std::string address_refusal(int device, const void* address) {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& [first, block] : blocks().by_address) {
    const auto* at = static_cast<const std::byte*>(address);
    if (at < first || at >= first + block.size) continue;
    return block.device == device ? "" : fmt::format("one of device {}", block.device);
  }
  return "one that CUDA does not know";
}

Device::Device(const Options& options) : options_(options), parts_(std::make_unique<Parts>()) {
  require_device(number());
}
Device::~Device() = default;

std::string Device::text() const { return "SIMT emulator on the host"; }

std::byte* Device::allocate(std::int64_t bytes) {
  expect_no_recording(*this, "memory is allocated");
  Block block{AlignedBytes(bytes + 3 * kStrip), nullptr, bytes, number()};
  const auto start = reinterpret_cast<std::uintptr_t>(block.bytes.data());
  const auto aligned = (start + kStrip - 1) / kStrip * kStrip;
  block.first = block.bytes.data() + (aligned - start) + kStrip;
  std::fill_n(block.first - kStrip, kStrip, kIntact);
  std::fill_n(block.first, bytes, new_memory());
  std::fill_n(block.first + bytes, kStrip, kIntact);
  std::byte* const first = block.first;
  const std::lock_guard lock(blocks().mutex);
  blocks().by_address.emplace(first, std::move(block));
  return first;
}

void Device::release(std::byte* memory) noexcept {
  const std::lock_guard lock(blocks().mutex);
  blocks().by_address.erase(memory);
}

void Device::upload(std::byte* dst, const void* src, std::int64_t bytes) {
  expect_no_recording(*this, "a copy from the host");
  std::memcpy(dst, src, std::size_t(bytes));
}

void Device::download(void* dst, const std::byte* src, std::int64_t bytes) {
  synchronize();
  std::memcpy(dst, src, std::size_t(bytes));
}

std::unique_ptr<Readback> Device::allocate_readback(std::int64_t bytes) {
  return std::make_unique<LateReadback>(shared_from_this(), bytes);
}

void Device::copy(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  const OnDevice here(*this);
  simt::enqueue([=] { std::memmove(dst, src, std::size_t(bytes)); });
}

void Device::synchronize() {
  expect_no_recording(*this, "the host waits");
  ++parts_->waits;
  ++simt::counts.waits;
  expect_intact();
}

double Device::seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {

// Another order of kernels that their dependencies allow: always the last one that waits for
// nothing more. What a dependency lacks then shows in the results.
std::vector<std::size_t> latest_first(const Dependencies& after) {
  std::vector<std::vector<std::size_t>> waiting(after.size());
  std::vector<std::size_t> missing;
  std::set<std::size_t> ready;
  for (std::size_t k = 0; k < after.size(); ++k) {
    for (const int j : after[k]) waiting[std::size_t(j)].push_back(k);
    missing.push_back(after[k].size());
    if (after[k].empty()) ready.insert(k);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t k = order.emplace_back(*ready.rbegin());
    ready.erase(k);
    for (const std::size_t other : waiting[k]) {
      if (--missing[other] == 0) ready.insert(other);
    }
  }
  return order;
}

}  // namespace

Kernel Device::record(std::span<const Kernel> kernels, const Dependencies& after) {
  expect_no_recording(*this, "another one begins");
  const OnDevice here(*this);
  Recording& recording = parts_->recording;
  recording = {.work = {}, .is_on = true};
  std::vector<std::vector<std::function<void()>>> works;  // of each kernel
  try {
    for (const Kernel& kernel : kernels) {
      kernel();
      works.push_back(std::exchange(recording.work, {}));
    }
  } catch (...) {
    recording.is_on = false;
    throw;
  }
  recording.is_on = false;
  ++simt::counts.recordings;
  return [works = std::move(works), order = latest_first(after)] {
    for (const std::size_t k : order) {
      for (const auto& item : works[k]) item();
    }
  };
}

void simt::enqueue(std::function<void()> work) {
  const Place& place = current_place();
  if (place.stream != nullptr) return place.stream->work.push_back(std::move(work));
  if (place.device == nullptr) return work();
  Recording& recording = place.device->parts().recording;
  recording.is_on ? recording.work.push_back(std::move(work)) : work();
}

void simt::synchronize(Stream& stream) {
  for (const auto& item : std::exchange(stream.work, {})) item();
  expect_intact();
}

}  // namespace keel::cuda
