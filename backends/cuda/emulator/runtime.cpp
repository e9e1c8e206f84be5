// The device's memory and copies, played by the host's. Every block of memory lies between two
// strips whose bytes are checked when it is read, waited for or released.
#include "backends/cuda/runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "src/core/tensor.h"

namespace keel::cuda {
namespace {

constexpr std::int64_t kStrip = 256;  // also the alignment
constexpr std::byte kIntact{0xA5};

struct Block {
  AlignedBytes bytes;
  std::byte* first = nullptr;
  std::int64_t size = 0;
};

std::map<std::byte*, Block>& blocks() {
  static std::map<std::byte*, Block> blocks;
  return blocks;
}

bool is_intact(const std::byte* strip) {
  return std::all_of(strip, strip + kStrip, [](std::byte b) { return b == kIntact; });
}

void expect_intact() {
  for (const auto& [first, block] : blocks()) {
    check(is_intact(first - kStrip) && is_intact(first + block.size), ErrorKind::kCheckFailed,
          "[emulator] a kernel wrote outside of {} bytes of device memory", block.size);
  }
}

}  // namespace

void require_device() {}

std::string device_text() { return "SIMT emulator on the host"; }

std::byte* allocate(std::int64_t bytes) {
  Block block{AlignedBytes(bytes + 3 * kStrip), nullptr, bytes};
  const auto start = reinterpret_cast<std::uintptr_t>(block.bytes.data());
  const auto aligned = (start + kStrip - 1) / kStrip * kStrip;
  block.first = block.bytes.data() + (aligned - start) + kStrip;
  std::fill_n(block.first - kStrip, kStrip, kIntact);
  std::fill_n(block.first + bytes, kStrip, kIntact);
  std::byte* const first = block.first;
  blocks().emplace(first, std::move(block));
  return first;
}

void release(std::byte* memory) noexcept { blocks().erase(memory); }

void upload(std::byte* dst, const void* src, std::int64_t bytes) {
  std::memcpy(dst, src, std::size_t(bytes));
}

void download(void* dst, const std::byte* src, std::int64_t bytes) {
  expect_intact();
  std::memcpy(dst, src, std::size_t(bytes));
}

void copy(std::byte* dst, const std::byte* src, std::int64_t bytes) {
  std::memmove(dst, src, std::size_t(bytes));
}

void synchronize() { expect_intact(); }

double seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Kernel record(std::span<const Kernel> kernels) {
  return [kernels] {
    for (const Kernel& kernel : kernels) kernel();
  };
}

}  // namespace keel::cuda
