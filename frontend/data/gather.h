// Copies of rows of a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/core/tensor.h"

namespace keel::data {

// out = the given rows of a column, one after the other, as bytes of the column's element type.
// Both gathers throw Error{kUsage} for a row that does not exist or an `out` of another size.
void gather(const Tensor& column, std::span<const std::int64_t> rows, std::span<std::byte> out);

// out = x * scale + offset for the elements x of the given rows of a u8 column.
struct Affine {
  float scale = 1, offset = 0;
};
void gather(const Tensor& column, std::span<const std::int64_t> rows, Affine affine,
            std::span<float> out);

}  // namespace keel::data
