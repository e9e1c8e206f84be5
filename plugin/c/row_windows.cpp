#include "plugin/c/row_windows.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace keel::plugin {

RowWindows::RowWindows(const Binding& arrays, std::span<const StridedArray> strided,
                       std::int64_t row, int threads)
    : arrays_(arrays), strided_(strided), row_(row), windows_(std::size_t(std::max(threads, 1))) {
  const std::int64_t elements = arrays.outputs[0].elements();
  bytes_ = aligned_size(std::min(elements, std::max(kWindowElements, row)) *
                        std::int64_t(sizeof(float)));
  for (Window& window : windows_) {
    window.arrays = arrays;
    // A result that is copied from here must stay in a cache.
    window.arrays.is_read_next =
        std::ranges::any_of(strided, [](const StridedArray& of) { return of.is_output; });
    window.rows = AlignedBytes(bytes_ * std::int64_t(strided.size()));
  }
}

RowWindow RowWindows::window() {
  return
      [this](std::int64_t first, std::int64_t last, const auto& body) { show(first, last, body); };
}

// There is one for every thread, unless an executor has more threads than it says.
RowWindows::Window& RowWindows::take() {
  for (;; std::this_thread::yield()) {
    for (Window& window : windows_) {
      if (!window.is_taken.exchange(true, std::memory_order_acquire)) return window;
    }
  }
}

void RowWindows::show(std::int64_t first, std::int64_t last,
                      const std::function<void(const Binding&)>& body) {
  Window& window = take();
  for (std::size_t i = 0; i < strided_.size(); ++i) {
    const StridedArray& of = strided_[i];
    TensorRef& shown = (of.is_output ? window.arrays.outputs : window.arrays.inputs)[of.place];
    std::byte* const rows = rows_of(window, i);
    // The address at which a contiguous array would begin.
    shown.data = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(rows) -
                                         std::uintptr_t(first * row_ * size_of(shown.type.dtype)));
    if (!of.is_output) {
      for_runs(of, first, last, [here = rows](std::byte* there, std::size_t bytes) mutable {
        std::memcpy(here, there, bytes);
        here += bytes;
      });
    }
  }
  body(window.arrays);
  for (std::size_t i = 0; i < strided_.size(); ++i) {
    if (!strided_[i].is_output) continue;
    for_runs(strided_[i], first, last,
             [here = rows_of(window, i)](std::byte* there, std::size_t bytes) mutable {
               std::memcpy(there, here, bytes);
               here += bytes;
             });
  }
  window.is_taken.store(false, std::memory_order_release);
}

std::byte* RowWindows::rows_of(const Window& window, std::size_t strided) const {
  return window.rows.data() + std::int64_t(strided) * bytes_;
}

// Calls body(address, bytes) for the runs of neighbours in which the rows of an array lie.
template <class Body>
void RowWindows::for_runs(const StridedArray& of, std::int64_t first, std::int64_t last,
                          Body body) const {
  const TensorRef& array = (of.is_output ? arrays_.outputs : arrays_.inputs)[of.place];
  const std::int64_t size = size_of(array.type.dtype);
  of.layout.for_runs(first * row_, last * row_, [&](std::int64_t offset, std::int64_t n) {
    body(array.as<std::byte>() + offset * size, std::size_t(n * size));
  });
}

}  // namespace keel::plugin
