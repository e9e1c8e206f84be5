#include "tests/plugin/emulated_device.h"

#include <algorithm>
#include <string>

#include "backends/cuda/emulator/simt.h"
#include "backends/cuda/runtime.h"

namespace {

using keel::cuda::Device;
namespace simt = keel::cuda::simt;

Device& device_of(int number) {
  static const std::shared_ptr<Device> devices[] = {
      std::make_shared<Device>(keel::cuda::Options{.device = 0}),
      std::make_shared<Device>(keel::cuda::Options{.device = 1})};
  return *devices[number];
}

simt::Stream& stream_of(void* stream) { return *static_cast<simt::Stream*>(stream); }

template <class Body>
const char* text_of(const Body& body) {
  thread_local std::string text;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

}  // namespace

void* keel_emulated_allocate(std::int32_t device, std::int64_t bytes) {
  std::byte* memory = device_of(device).allocate(bytes);
  std::fill_n(memory, bytes, std::byte{0xff});
  return memory;
}
void keel_emulated_release(void* memory) { device_of(0).release(static_cast<std::byte*>(memory)); }

void* keel_emulated_stream(std::int32_t device) { return new simt::Stream{device}; }
void keel_emulated_free_stream(void* stream) { delete &stream_of(stream); }
std::int64_t keel_emulated_waiting(void* stream) {
  return std::int64_t(stream_of(stream).work.size());
}

const char* keel_emulated_synchronize(void* stream) {
  return text_of([&] { simt::synchronize(stream_of(stream)); });
}
const char* keel_emulated_replay(void* stream) {
  return text_of([&] {
    const auto kept = stream_of(stream).work;
    simt::synchronize(stream_of(stream));
    stream_of(stream).work = kept;
  });
}
