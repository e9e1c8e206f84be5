// Column sums of a tensor of tokens, compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_STRIPS_INL_H_
#endif

#include "backends/onednn/column_plan.h"
#include "backends/onednn/simd/row_norm-inl.h"
#include "backends/onednn/simd/wide_doubles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Some kept rows of a tile that are summed together; each is the offset of its first element. There
// are so few that their sums can be kept in float.
struct Strip {
  static constexpr std::size_t kMostRows = 64;
  std::size_t rows = 0, offsets[kMostRows];
};

HWY_INLINE bool is_kept(RowMask mask, std::size_t row) { return mask == nullptr || mask[row] != 0; }

// Calls body(strip) for strips that cover the kept rows of a tile. All but the last are full.
template <class Body>
HWY_INLINE void for_strips(const Tile& tile, RowMask mask, const Body& body) {
  const std::size_t before = tile.offset / tile.stride;
  Strip strip;
  for (std::size_t row = 0; row < tile.rows; ++row) {
    if (!is_kept(mask, before + row)) continue;
    strip.offsets[strip.rows++] = tile.offset + row * tile.stride;
    if (strip.rows < Strip::kMostRows) continue;
    body(strip);
    strip.rows = 0;
  }
  if (strip.rows > 0) body(strip);
}

// Sums of `Columns::kKinds` kinds over a strip, for kRegisters registers of columns from c on. The
// sums stay in registers from the first row to the last: in an array, their stores would delay
// loads from addresses that differ by whole pages.
template <std::size_t kRegisters, class Part, class Columns>
HWY_INLINE void sum_registers(Part part, const Strip& strip, std::size_t c,
                              const Columns& columns) {
  constexpr std::size_t kKinds = Columns::kKinds, kGroup = 8;
  using Sums = Floats[kKinds];
  decltype(columns.constants(part, c)) constants[kRegisters];
  Sums sums[kRegisters];
  const auto clear = [](Sums& of) KEEL_LOOP_BODY {
    unrolled<kKinds>([&](std::size_t k) KEEL_LOOP_BODY { of[k] = zero(); });
  };
  const auto add_row = [&](std::size_t row, Sums* to) KEEL_LOOP_BODY {
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
      columns.add(part, strip.offsets[row] + c + r * kLanes, constants[r], to[r]);
    });
  };
  unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
    constants[r] = columns.constants(part, c + r * kLanes);
    clear(sums[r]);
  });
  std::size_t row = 0;
  for (; row + kGroup <= strip.rows; row += kGroup) {
    Sums group[kRegisters];
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY { clear(group[r]); });
    for (std::size_t k = 0; k < kGroup; ++k) add_row(row + k, group);
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
      unrolled<kKinds>([&](std::size_t k)
                           KEEL_LOOP_BODY { sums[r][k] = hn::Add(sums[r][k], group[r][k]); });
    });
  }
  for (; row < strip.rows; ++row) add_row(row, sums);
  unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
    columns.take(part, c + r * kLanes, constants[r], sums[r]);
  });
}

// Sums n columns of a strip. columns.add(part, i, constants, sums) adds the terms of the register
// at element i to sums[kKinds]. columns.take(part, c, constants, sums) receives the sums of columns
// c, c + 1, ...; constants are columns.constants(part, c).
template <class Columns>
HWY_INLINE void sum_strip(const Strip& strip, std::size_t n, const Columns& columns) {
  // A register of columns needs 2 kKinds sums (strip, group of rows); the CPU has 32 or 16.
  constexpr std::size_t kRoom = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  constexpr std::size_t kRegisters = Columns::kKinds > 2 ? kRoom / 2 : kRoom;
  std::size_t c = 0;
  for (; c + kRegisters * kLanes <= n; c += kRegisters * kLanes) {
    sum_registers<kRegisters>(Whole{}, strip, c, columns);
  }
  for (; c + kLanes <= n; c += kLanes) sum_registers<1>(Whole{}, strip, c, columns);
  if (c < n) sum_registers<1>(First(n - c), strip, c, columns);
}

// `is_first`: stores the sums instead of adding them to zeros.
HWY_INLINE void add_to(double* sums, const WideDoubles& more, bool is_first = false) {
  (is_first ? more : WideDoubles::load(sums) + more).store(sums);
}

// Whether a sum of squares has neither overflowed nor lost elements to underflow.
HWY_INLINE hn::Mask<F> in_range(Floats squares) {
  return hn::And(hn::Gt(squares, splat(static_cast<float>(kLeastSquares))),
                 hn::Lt(squares, splat(std::numeric_limits<float>::infinity())));
}

// Whether a condition holds for all columns of a register.
template <class Part>
HWY_INLINE bool holds_for_all(Part part, hn::Mask<F> condition) {
  return hn::AllTrue(F(), hn::Eq(part.only(hn::IfThenZeroElse(condition, splat(1))), zero()));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
