// Streams on which copies from the host come as late as CUDA allows: when other work of the stream,
// or somebody who waits, needs them. All other work is done at once. So a result shows what the
// host overwrites too early in its own memory, and a stream that does not wait for another one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>

namespace keel::ptx {

struct Stream {
  std::deque<std::function<void()>> late;
  std::int64_t begun = 0;  // copies that have come

  // The number of the next copy.
  std::int64_t place() const { return begun + std::int64_t(late.size()); }
  // Lets the copies before a place come.
  void come_to(std::int64_t place) {
    for (; begun < place && !late.empty(); ++begun) {
      late.front()();
      late.pop_front();
    }
  }
};

// That of a handle; all null handles have one.
inline Stream& stream_of(cudaStream_t handle) {
  static Stream usual;
  return handle == nullptr ? usual : *reinterpret_cast<Stream*>(handle);
}

// Lets all copies of a stream come, before other work of it.
inline void begin_work(cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  stream.come_to(stream.place());
}

}  // namespace keel::ptx
