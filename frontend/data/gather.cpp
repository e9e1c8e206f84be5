#include "frontend/data/gather.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel::data {
namespace {

// Elements in one row, after checking what the gathers promise. `got` counts elements of out.
std::int64_t checked_row_size(const Tensor& column, std::span<const std::int64_t> rows,
                              std::size_t got) {
  const Shape& shape = column.shape();
  check(shape.rank() > 0, ErrorKind::kUsage, "[gather] column: expected rows, got a scalar");
  const std::int64_t row_size = shape.elements(1, shape.rank());
  const std::int64_t expected = row_size * static_cast<std::int64_t>(rows.size());
  check(static_cast<std::int64_t>(got) == expected, ErrorKind::kUsage,
        "[gather] out: expected room for {} elements, got {}", expected, got);
  for (std::int64_t row : rows) {
    check(row >= 0 && row < shape[0], ErrorKind::kUsage, "[gather] row: expected 0 to {}, got {}",
          shape[0] - 1, row);
  }
  return row_size;
}

}  // namespace

void gather(const Tensor& column, std::span<const std::int64_t> rows, std::span<std::byte> out) {
  const std::int64_t element = size_of(column.dtype());
  check(static_cast<std::int64_t>(out.size()) % element == 0, ErrorKind::kUsage,
        "[gather] out: expected whole {} elements, got {} bytes", name_of(column.dtype()),
        out.size());
  const std::int64_t row_bytes =
      element * checked_row_size(column, rows, out.size() / static_cast<std::size_t>(element));
  std::byte* to = out.data();
  for (std::int64_t row : rows) {
    to = std::copy_n(column.data() + row * row_bytes, row_bytes, to);
  }
}

void gather(const Tensor& column, std::span<const std::int64_t> rows, Affine affine,
            std::span<float> out) {
  const std::span<const std::uint8_t> values = column.as<std::uint8_t>();
  const std::int64_t row_size = checked_row_size(column, rows, out.size());
  float* to = out.data();
  for (std::int64_t row : rows) {
    const std::uint8_t* from = values.data() + row * row_size;
    for (std::int64_t i = 0; i < row_size; ++i) to[i] = from[i] * affine.scale + affine.offset;
    to += row_size;
  }
}

}  // namespace keel::data
