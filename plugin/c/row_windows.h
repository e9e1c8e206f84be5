// The rows of arrays that are not contiguous, for kernels that take contiguous ones: some rows at a
// time are copied, to and from memory that stays in a cache, so that a call needs no copy of an
// array.
#pragma once

#include <atomic>

#include "plugin/c/layout.h"

namespace keel::plugin {

// An input or output of an op by its place, which has the shape of x.
struct StridedArray {
  bool is_output;
  std::size_t place;
  Layout layout;
};

// The longest row, in elements, of which a window has a copy.
inline constexpr std::int64_t kLongestRow = 16 * 1024;

class RowWindows {
 public:
  // Rows have `row` elements; so many threads may look through the windows at once.
  RowWindows(const Binding& arrays, std::span<const StridedArray> strided, std::int64_t row,
             int threads);
  // It may be used as long as this object lives.
  RowWindow window();

 private:
  struct Window {
    std::atomic<bool> is_taken = false;
    Binding arrays;
    AlignedBytes rows;
  };
  Window& take();
  void show(std::int64_t first, std::int64_t last, const std::function<void(const Binding&)>& body);
  std::byte* rows_of(const Window& window, std::size_t strided) const;
  template <class Body>
  void for_runs(const StridedArray& of, std::int64_t first, std::int64_t last, Body body) const;

  const Binding& arrays_;
  std::span<const StridedArray> strided_;
  std::int64_t row_, bytes_;  // elements of a row; bytes of the rows of one array in a window
  std::vector<Window> windows_;
};

}  // namespace keel::plugin
