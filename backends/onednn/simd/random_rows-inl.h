// Loops over the elements of rows together with their random words; compiled
// once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_RANDOM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_RANDOM_ROWS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_RANDOM_ROWS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_RANDOM_ROWS_INL_H_
#endif

#include <algorithm>

#include "backends/onednn/random_rows.h"
#include "backends/onednn/simd/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// A block of random words: its row of the batch and its index in the row.
struct RowPlace {
  std::int64_t row, index;
};

// The words of kLanes blocks from `place` on, if each row has `row_blocks` blocks.
HWY_INLINE PhiloxWords words_across(const RandomRows& of, RowPlace place, std::int64_t row_blocks) {
  const auto set = [](std::int64_t value) HWY_ATTR { return hn::Set(U(), std::uint32_t(value)); };
  Words row = set(of.first_row + place.row), index = hn::Add(set(place.index), hn::Iota(U(), 0));
  // Blocks after a row's end belong to the next row; a group may contain many such ends.
  const Words length = set(row_blocks), last = set(row_blocks - 1);
  for (std::int64_t end = row_blocks; end < place.index + std::int64_t(kLanes); end += row_blocks) {
    const auto is_behind = hn::Gt(index, last);
    row = hn::Sub(row, hn::VecFromMask(U(), is_behind));
    index = hn::Sub(index, hn::IfThenElseZero(is_behind, length));
  }
  return philox_words(of.stream, row, index);
}

// Draws for the elements of blocks [begin, end), counted through all rows. make(words, made) turns
// the words of kLanes blocks into kEach values of T a block. use(first, made, n) receives the
// values of n elements of one row; `first` is their index in the tensor. It must not read beyond
// them, because the array ends there.
template <std::size_t kEach, class T, class Make, class Use>
HWY_INLINE void each_sampled(const RandomRows& of, std::int64_t begin, std::int64_t end,
                             const Make& make, const Use& use) {
  constexpr auto kGroup = std::int64_t(kLanes), kShare = std::int64_t(kEach);
  const std::int64_t width = of.rows.width, row_blocks = (width + kShare - 1) / kShare;
  RowPlace place{begin / row_blocks, begin % row_blocks};
  while (begin < end) {
    const std::int64_t blocks = std::min(kGroup, end - begin);
    HWY_ALIGN T made[kEach * kLanes];
    place.index + blocks <= row_blocks
        ? make(philox_words(of.stream, of.first_row + place.row, place.index), made)
        : make(words_across(of, place, row_blocks), made);
    for (std::int64_t lane = 0; lane < blocks;) {
      const std::int64_t own = std::min(blocks - lane, row_blocks - place.index);
      const std::int64_t e = kShare * place.index, n = std::min(width - e, kShare * own);
      use(place.row * width + e, made + kShare * lane, std::size_t(n));
      lane += own;
      place.index += own;
      if (place.index == row_blocks) place = {place.row + 1, 0};
    }
    begin += blocks;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
