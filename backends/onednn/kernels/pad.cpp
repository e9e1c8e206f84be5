// Padding: every row of the output is written once, from x or with the value.
#include <algorithm>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/cursor.h"
#include "backends/onednn/kernels/kernels.h"
#include "src/core/bf16.h"
#include "src/core/with_type.h"
#include "src/ops/layout.h"

namespace keel::onednn {
namespace {

// Output rows of `size` elements of x between `before` and `after` elements of padding, or all
// padding where an outer axis is beyond x.
struct Padding {
  int rank = 0;  // of the outer axes
  Sizes sizes{}, first{}, last{}, strides{};
  std::int64_t before = 0, size = 1, after = 0, rows = 1;

  // Offset of the row in x, or -1.
  std::int64_t source(const Cursor& cursor) const {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < std::size_t(rank); ++axis) {
      const std::int64_t place = cursor.place()[axis];
      if (place < first[axis] || place >= last[axis]) return -1;
      offset += (place - first[axis]) * strides[axis];
    }
    return offset;
  }
};

Padding make_padding(const Shape& x, const PadAttrs& attrs) {
  Padding p;
  int axis = x.rank() - 1;
  // Axes without padding belong to the run.
  while (axis >= 0 && attrs.before[std::size_t(axis)] + attrs.after[std::size_t(axis)] == 0) {
    p.size *= x[axis--];
  }
  if (axis >= 0) {
    p.before = attrs.before[std::size_t(axis)] * p.size;
    p.after = attrs.after[std::size_t(axis)] * p.size;
    p.size *= x[axis];
  }
  p.rank = std::max(axis, 0);
  p.strides = x.strides();
  for (std::size_t i = 0; i < std::size_t(p.rank); ++i) {
    p.first[i] = attrs.before[i];
    p.last[i] = attrs.before[i] + x[int(i)];
    p.sizes[i] = p.last[i] + attrs.after[i];
    p.rows *= p.sizes[i];
  }
  return p;
}

template <class T>
void pad(const Binding& b, const Padding& p, T value) {
  const T* x = b.inputs[0].as<T>();
  T* y = b.outputs[0].as<T>();
  const std::int64_t width = p.before + p.size + p.after;
  const std::int64_t block = kBlockElements / std::max<std::int64_t>(width, 1) + 1;
  parallel_range(p.rows, block, [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(p.sizes, p.rank, begin);
    for (std::int64_t row = begin; row < end; ++row, cursor.next()) {
      T* to = y + row * width;
      const std::int64_t from = p.source(cursor);
      if (from < 0) {
        std::fill_n(to, width, value);
        continue;
      }
      std::fill_n(to, p.before, value);
      std::copy_n(x + from, p.size, to + p.before);
      std::fill_n(to + p.before + p.size, p.after, value);
    }
  });
}

}  // namespace

Prepared prepare_pad(const NodeContext& context) {
  const auto& attrs = context.attrs<PadAttrs>();
  const Padding p = make_padding(context.input(0).shape, attrs);
  const double value = attrs.value;
  Prepared prepared;
  with_type<float, BF16, std::int32_t, std::uint8_t>(context.output().dtype, [&](auto element) {
    using T = decltype(element);
    prepared = kernel_of([=](const Binding& b) { pad(b, p, static_cast<T>(value)); });
  });
  return prepared;
}

}  // namespace keel::onednn
