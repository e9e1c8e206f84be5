// Products of matrices with bf16 elements, added up in float32, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/bf16.h"

namespace keel::onednn {

// Two neighbouring terms of a sum, the first in the lower half: an instruction takes both at once.
using Pair = std::uint32_t;
constexpr std::size_t pairs_of(std::size_t terms) { return (terms + 1) / 2; }

// c = a b, or c + a b. The order of an element's additions depends only on `terms`.
struct NarrowProduct {
  std::size_t rows, terms, columns;
  const BF16* a;  // (rows, terms), a_row elements from one row to the next
  std::size_t a_row;
  const Pair* b;  // (pairs_of(terms), columns), b_row pairs from one to the next; 0 after the last
  std::size_t b_row;
  float* c;  // (rows, columns)
  std::size_t c_row;
  bool adds;
};
using MultiplyNarrow = void (*)(const NarrowProduct&);

// By AMX_BF16, by AVX512_BF16, or in float32, where a product of two bf16 numbers is exact. The
// first two take subnormal numbers as 0, and are null where the build has no such code.
extern const MultiplyNarrow kMultiplyByTiles;
void multiply_by_pairs(const NarrowProduct& product);
void multiply_widened(const NarrowProduct& product);

// The function that this process uses (kernels/bf16.h); null where it refuses products of bf16.
MultiplyNarrow narrow_product_here();

}  // namespace keel::onednn
