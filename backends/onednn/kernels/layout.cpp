// Transposing, slicing and joining: runs that stay contiguous are copied whole, transposed planes
// tile by tile. reshape is a view and has no kernel.
#include "src/ops/layout.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/cursor.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/transpose_tile.h"
#include "src/core/bf16.h"
#include "src/core/with_type.h"

namespace keel::onednn {
namespace {

constexpr std::int64_t kBlockBytes = 4 * kBlockElements;

// The output's axes with the input's strides along them, those of size 1 left out and neighbours
// merged where the input allows it.
struct Axes {
  int rank = 0;
  Sizes sizes{}, strides{};

  void append(std::int64_t size, std::int64_t stride) {
    if (size == 1) return;
    const auto last = std::size_t(rank - 1);
    if (rank > 0 && strides[last] == size * stride) {
      sizes[last] *= size;
      strides[last] = stride;
    } else {
      sizes[std::size_t(rank)] = size;
      strides[std::size_t(rank++)] = stride;
    }
  }
  std::int64_t elements() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= sizes[std::size_t(i)];
    return product;
  }
  // Removes and returns an axis as (size, stride).
  std::pair<std::int64_t, std::int64_t> take(int axis) {
    const auto i = std::size_t(axis);
    const std::pair taken(sizes[i], strides[i]);
    std::copy(sizes.begin() + axis + 1, sizes.end(), sizes.begin() + axis);
    std::copy(strides.begin() + axis + 1, strides.end(), strides.begin() + axis);
    --rank;
    return taken;
  }
};

// Copies a run of `bytes` from every place of `rows` in src to dst, one after another.
void copy_runs(const Axes& rows, std::int64_t bytes, std::int64_t element, const std::byte* src,
               std::byte* dst) {
  if (bytes == 0) return;
  if (rows.rank == 0) {
    return parallel_range(bytes, kBlockBytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(dst + begin, src + begin, std::size_t(end - begin));
    });
  }
  const std::int64_t block = std::max<std::int64_t>(1, kBlockBytes / bytes);
  parallel_range(rows.elements(), block, [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(rows.sizes, rows.rank, begin);
    for (std::int64_t row = begin; row < end; ++row, cursor.next()) {
      std::memcpy(dst + row * bytes, src + cursor.offset(rows.strides) * element,
                  std::size_t(bytes));
    }
  });
}

// Reads a box of the input whose corner lies `start` elements in, along the given axes.
Prepared gather(Axes axes, std::int64_t start, DType dtype) {
  const std::int64_t element = size_of(dtype);
  std::int64_t run = 1;
  if (axes.rank > 0 && axes.strides[std::size_t(axes.rank - 1)] == 1) {
    run = axes.take(axes.rank - 1).first;
  }
  return kernel_of([=](const Binding& b) {
    copy_runs(axes, run * element, element, b.inputs[0].as<std::byte>() + start * element,
              b.outputs[0].as<std::byte>());
  });
}

template <class T>
void transpose_tile(const Tile<T>& t) {
  for (std::int64_t j = 0; j < t.columns; ++j) {
    for (std::int64_t i = 0; i < t.rows; ++i) {
      t.dst[j * t.dst_stride + i] = t.src[i * t.src_stride + j];
    }
  }
}

constexpr std::int64_t kTile = 64;

// Planes (rows, columns) of the input, columns contiguous, become (columns, rows) of the output.
struct Planes {
  Axes others;  // with the input's strides
  Sizes out{};  // the output's strides along `others`
  std::int64_t rows, columns, src_stride, dst_stride;
};

template <class T>
void transpose_planes(const Planes& p, const T* src, T* dst) {
  const std::int64_t down = (p.rows + kTile - 1) / kTile;
  const std::int64_t across = (p.columns + kTile - 1) / kTile;
  const std::int64_t elements = std::min(p.rows, kTile) * std::min(p.columns, kTile);
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / elements);
  parallel_range(
      p.others.elements() * down * across, block, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          const Cursor plane(p.others.sizes, p.others.rank, unit / down / across);
          const std::int64_t i = unit % down * kTile;
          const std::int64_t j = unit / down % across * kTile;
          const T* from = src + plane.offset(p.others.strides) + i * p.src_stride + j;
          T* to = dst + plane.offset(p.out) + j * p.dst_stride + i;
          transpose_tile(Tile<T>{from, to, p.src_stride, p.dst_stride, std::min(kTile, p.rows - i),
                                 std::min(kTile, p.columns - j)});
        }
      });
}

// Two axes are exchanged: the last one of the output and the one contiguous in the input.
Prepared transpose_planes_of(Axes axes, DType dtype) {
  Planes p{};
  std::int64_t stride = 1;
  for (int i = axes.rank - 1; i >= 0; --i) {
    p.out[std::size_t(i)] = stride;
    stride *= axes.sizes[std::size_t(i)];
  }
  std::tie(p.rows, p.src_stride) = axes.take(axes.rank - 1);
  const auto contiguous = int(std::find(axes.strides.begin(), axes.strides.begin() + axes.rank, 1) -
                              axes.strides.begin());
  p.dst_stride = p.out[std::size_t(contiguous)];
  std::copy(p.out.begin() + contiguous + 1, p.out.end(), p.out.begin() + contiguous);
  p.columns = axes.take(contiguous).first;
  p.others = axes;
  Prepared prepared;
  with_type<float, BF16, std::int32_t, std::uint8_t>(dtype, [&](auto element) {
    // Elements of four bytes are moved as floats.
    using Element = decltype(element);
    using T = std::conditional_t<sizeof element == 4, float, Element>;
    prepared = kernel_of(
        [p](const Binding& b) { transpose_planes(p, b.inputs[0].as<T>(), b.outputs[0].as<T>()); });
  });
  return prepared;
}

}  // namespace

Prepared prepare_transpose(const NodeContext& context) {
  const Shape& x = context.input(0).shape;
  const auto strides = x.strides();
  Axes axes;
  for (std::int64_t axis : context.attrs<TransposeAttrs>().axes) {
    axes.append(x[int(axis)], strides[std::size_t(axis)]);
  }
  const DType dtype = context.output().dtype;
  const bool keeps_last =
      axes.rank == 0 || axes.strides[std::size_t(axes.rank - 1)] == 1 || x.elements() == 0;
  return keeps_last ? gather(axes, 0, dtype) : transpose_planes_of(axes, dtype);
}

Prepared prepare_slice(const NodeContext& context) {
  const Shape &x = context.input(0).shape, &y = context.output().shape;
  const auto strides = x.strides();
  Axes axes;
  std::int64_t start = 0;
  for (int i = 0; i < x.rank(); ++i) {
    axes.append(y[i], strides[std::size_t(i)]);
    start += context.attrs<SliceAttrs>().starts[std::size_t(i)] * strides[std::size_t(i)];
  }
  return gather(axes, start, context.output().dtype);
}

// For parts that a view could not leave where they lie: short ones.
Prepared prepare_split(const NodeContext& context) {
  const auto bytes = std::size_t(context.output().bytes());
  return kernel_of([=](const Binding& b) {
    const std::byte* src = b.inputs[0].as<std::byte>();
    for (const TensorRef& part : b.outputs) {
      if (bytes > 0) std::memcpy(part.as<std::byte>(), src, bytes);
      src += bytes;
    }
  });
}

Prepared prepare_concat(const NodeContext& context) {
  const Shape& y = context.output().shape;
  const int axis = int(context.attrs<ConcatAttrs>().axis);
  const std::int64_t rows = y.elements(0, axis);
  const std::int64_t unit = y.elements(axis + 1, y.rank()) * size_of(context.output().dtype);
  const std::int64_t width = y[axis] * unit;  // bytes
  return kernel_of([=](const Binding& b) {
    std::byte* dst = b.outputs[0].as<std::byte>();
    for (const TensorRef& part : b.inputs) {
      if (part.elements() == 0) continue;
      const std::byte* src = part.as<std::byte>();
      const std::int64_t run = part.type.shape[axis] * unit;
      const std::int64_t block = rows == 1 ? 1 : kBlockBytes / std::max<std::int64_t>(run, 1) + 1;
      parallel_range(rows, block, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          std::memcpy(dst + row * width, src + row * run, std::size_t(run));
        }
      });
      dst += run;
    }
  });
}

}  // namespace keel::onednn
