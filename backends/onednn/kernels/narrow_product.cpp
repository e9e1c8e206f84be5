// Products of bf16 in registers of float32, each of whose lanes takes a pair of terms at a time.
#include "backends/onednn/narrow_product.h"

#include "backends/onednn/instruction_set.h"
#include "backends/onednn/kernels/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/narrow_product.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/bf16-inl.h"

// The file's code for AVX-512 may use the instruction for pairs; callers ask for it by name.
#undef KEEL_HAS_PAIRS
#if HWY_TARGET == HWY_AVX3
#define KEEL_HAS_PAIRS 1
#else
#define KEEL_HAS_PAIRS 0
#endif

HWY_BEFORE_NAMESPACE();
#if KEEL_HAS_PAIRS
HWY_PUSH_ATTRIBUTES("avx512bf16")
#endif
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

struct Widened {
  HWY_INLINE Floats add(Floats sum, Words a, Words b) const {
    const Words upper = hn::Set(U(), 0xffff0000u);
    sum = hn::MulAdd(widened(a), widened(b), sum);
    return hn::MulAdd(hn::BitCast(F(), hn::And(a, upper)), hn::BitCast(F(), hn::And(b, upper)),
                      sum);
  }
};

#if KEEL_HAS_PAIRS
struct Paired {
  HWY_INLINE Floats add(Floats sum, Words a, Words b) const {
    return Floats{_mm512_dpbf16_ps(sum.raw, (__m512bh)a.raw, (__m512bh)b.raw)};
  }
};
#else
using Paired = Widened;
#endif

// kRows rows of c from row i on, of one register of columns.
template <std::size_t kRows, class Dot, class Part>
HWY_INLINE void multiply_rows(const NarrowProduct& p, std::size_t i, std::size_t j, Part part) {
  Floats sums[kRows];
  float* const c = p.c + i * p.c_row + j;
  for (std::size_t m = 0; m < kRows; ++m) {
    sums[m] = p.adds ? part.load(c + m * p.c_row) : zero();
  }
  for (std::size_t k = 0; k < pairs_of(p.terms); ++k) {
    const Words b = part.load(p.b + k * p.b_row + j);
    for (std::size_t m = 0; m < kRows; ++m) {
      const BF16* const at = p.a + (i + m) * p.a_row + 2 * k;
      const Pair a = 2 * k + 1 < p.terms ? pair_at(at) : bits_of(*at);
      sums[m] = Dot().add(sums[m], hn::Set(U(), a), b);
    }
  }
  for (std::size_t m = 0; m < kRows; ++m) part.store(sums[m], c + m * p.c_row);
}

template <class Dot>
void multiply_all(const NarrowProduct& p) {
  for_lanes(p.columns, [&](auto part, std::size_t j) HWY_ATTR {
    std::size_t i = 0;
    for (; i + 8 <= p.rows; i += 8) multiply_rows<8, Dot>(p, i, j, part);
    for (; i < p.rows; ++i) multiply_rows<1, Dot>(p, i, j, part);
  });
}

void widened_product(const NarrowProduct& p) { multiply_all<Widened>(p); }
void paired_product(const NarrowProduct& p) { multiply_all<Paired>(p); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
#if KEEL_HAS_PAIRS
HWY_POP_ATTRIBUTES
#endif
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(widened_product);
HWY_EXPORT(paired_product);

void multiply_widened(const NarrowProduct& product) {
  HWY_DYNAMIC_DISPATCH(widened_product)(product);
}
void multiply_by_pairs(const NarrowProduct& product) {
  HWY_DYNAMIC_DISPATCH(paired_product)(product);
}

MultiplyNarrow narrow_product_here() {
  switch (narrow_products_here()) {
    case Bf16Products::kRefused:
      return nullptr;
    case Bf16Products::kEmulated:
      return multiply_widened;
    case Bf16Products::kNative:
      break;
  }
  const bool has_tiles = has_tile_instructions() && kMultiplyByTiles != nullptr;
  return has_tiles ? kMultiplyByTiles : multiply_by_pairs;
}

}  // namespace keel::onednn
#endif
