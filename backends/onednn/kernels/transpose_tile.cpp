#include "backends/onednn/kernels/transpose_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/transpose_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void one_by_one(const Tile<T>& t, std::int64_t first_row, std::int64_t first_column) {
  for (std::int64_t i = first_row; i < t.rows; ++i) {
    for (std::int64_t j = first_column; j < t.columns; ++j) {
      t.dst[j * t.dst_stride + i] = t.src[i * t.src_stride + j];
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
void transpose(const Tile<T>& tile) {
  one_by_one(tile, 0, 0);
}

#else

template <class T>
HWY_INLINE void four_by_four(const T* src, std::int64_t src_stride, T* dst,
                             std::int64_t dst_stride) {
  const hn::FixedTag<T, 4> d;
  const auto a = hn::LoadU(d, src), b = hn::LoadU(d, src + src_stride);
  const auto c = hn::LoadU(d, src + 2 * src_stride), e = hn::LoadU(d, src + 3 * src_stride);
  const auto ac_low = hn::InterleaveLower(a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(b, e), be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(ac_low, be_low), d, dst);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, dst + dst_stride);
  hn::StoreU(hn::InterleaveLower(ac_high, be_high), d, dst + 2 * dst_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, dst + 3 * dst_stride);
}

template <class T>
void transpose(const Tile<T>& t) {
  const std::int64_t rows = t.rows / 4 * 4, columns = t.columns / 4 * 4;
  for (std::int64_t j = 0; j < columns; j += 4) {
    for (std::int64_t i = 0; i < rows; i += 4) {
      four_by_four(t.src + i * t.src_stride + j, t.src_stride, t.dst + j * t.dst_stride + i,
                   t.dst_stride);
    }
  }
  one_by_one(t, rows, 0);
  one_by_one<T>({t.src, t.dst, t.src_stride, t.dst_stride, rows, t.columns}, 0, columns);
}

#endif

void transpose_floats(const Tile<float>& tile) { transpose(tile); }
void transpose_words(const Tile<std::uint32_t>& tile) { transpose(tile); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(transpose_floats);
HWY_EXPORT(transpose_words);

void transpose_tile(const Tile<float>& tile) { HWY_DYNAMIC_DISPATCH(transpose_floats)(tile); }
void transpose_tile(const Tile<std::uint32_t>& tile) {
  HWY_DYNAMIC_DISPATCH(transpose_words)(tile);
}

}  // namespace keel::onednn
#endif
