// Products of matrices that fit in L1 or L2, on one thread, compiled once per instruction set. A
// block of the result stays in registers from the first term to the last, so the bits of an element
// do not depend on the number of rows and columns.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_SMALL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_SMALL_PRODUCT_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_SMALL_PRODUCT_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_SMALL_PRODUCT_INL_H_
#endif

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// A matrix whose element (i, j) is at[i * row + j * column].
template <class T>
struct StridedOf {
  const T* at;
  std::size_t row, column;
};
using Strided = StridedOf<float>;
// A matrix whose rows are contiguous.
template <class T>
struct Rows {
  T* at;
  std::size_t row;
};
// A factor for each row of a result: at[i * step].
struct RowFactors {
  const float* at;
  std::size_t step;
};

// c = factor a b, or c + factor a b.
struct SmallProduct {
  std::size_t rows, terms, columns;
  Strided a;            // (rows, terms)
  Rows<const float> b;  // (terms, columns)
  Rows<float> c;        // (rows, columns)
  RowFactors factors;   // (rows)
  bool adds;
};

// The elements of c from (i, j) on that fit the registers; `last` is the last one in a row.
template <std::size_t kRows, std::size_t kRegisters, class Part>
HWY_INLINE void multiply_block(const SmallProduct& p, std::size_t i, std::size_t j, Part last) {
  Floats sums[kRows][kRegisters];
  const auto load = [&](const float* at, std::size_t r) KEEL_LOOP_BODY {
    return r + 1 < kRegisters ? hn::LoadU(F(), at + r * kLanes) : last.load(at + r * kLanes);
  };
  unrolled<kRows>([&](std::size_t m) KEEL_LOOP_BODY {
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY { sums[m][r] = zero(); });
  });
  const float* a = p.a.at + i * p.a.row;
  const float* b = p.b.at + j;
  for (std::size_t k = 0; k < p.terms; ++k, a += p.a.column, b += p.b.row) {
    Floats terms[kRegisters];
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY { terms[r] = load(b, r); });
    unrolled<kRows>([&](std::size_t m) KEEL_LOOP_BODY {
      const Floats factor = splat(a[m * p.a.row]);
      unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
        sums[m][r] = hn::MulAdd(factor, terms[r], sums[m][r]);
      });
    });
  }
  unrolled<kRows>([&](std::size_t m) KEEL_LOOP_BODY {
    float* const c = p.c.at + (i + m) * p.c.row + j;
    const Floats factor = splat(p.factors.at[(i + m) * p.factors.step]);
    unrolled<kRegisters>([&](std::size_t r) KEEL_LOOP_BODY {
      Floats value = hn::Mul(sums[m][r], factor);
      if (p.adds) value = hn::Add(load(c, r), value);
      if (r + 1 < kRegisters) {
        hn::StoreU(value, F(), c + r * kLanes);
      } else {
        last.store(value, c + r * kLanes);
      }
    });
  });
}

// Computes all rows. Four or six rows keep two multipliers busy, fewer do not: eight are 4 + 4.
template <std::size_t kRegisters, class Part>
HWY_NOINLINE void multiply_columns(const SmallProduct& p, std::size_t j, Part last) {
  std::size_t i = 0;
  const auto left = [&](std::size_t rows) KEEL_LOOP_BODY { return p.rows - i >= rows; };
  for (; left(6) && p.rows - i != 8; i += 6) multiply_block<6, kRegisters>(p, i, j, last);
  for (; left(4); i += 4) multiply_block<4, kRegisters>(p, i, j, last);
  for (; left(2); i += 2) multiply_block<2, kRegisters>(p, i, j, last);
  for (; left(1); ++i) multiply_block<1, kRegisters>(p, i, j, last);
}

HWY_INLINE void multiply(const SmallProduct& p) {
  std::size_t j = 0;
  for (; j + 2 * kLanes <= p.columns; j += 2 * kLanes) multiply_columns<2>(p, j, Whole{});
  if (j + kLanes <= p.columns) {
    multiply_columns<1>(p, j, Whole{});
    j += kLanes;
  }
  if (j < p.columns) multiply_columns<1>(p, j, First(p.columns - j));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
