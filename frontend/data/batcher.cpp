// Epoch permutations and row copies.
#include "frontend/data/batcher.h"

#include <algorithm>
#include <numeric>

#include "frontend/data/permutation.h"

namespace keel::data {
namespace {

constexpr std::uint32_t kOrderStream = stream_of("data.order");

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

Batcher::Batcher(std::int64_t rows, const BatchOptions& options) : options_(options) {
  check(options.batch > 0, ErrorKind::kUsage, "[batcher] batch: expected 1 or more, got {}",
        options.batch);
  check(rows > 0 && rows < std::int64_t{1} << 32, ErrorKind::kUsage,
        "[batcher] rows: expected 1 to 2^32 - 1, got {}", rows);
  check(options.keep_partial || options.batch <= rows, ErrorKind::kUsage,
        "[batcher] batch: expected at most the {} rows, got {}", rows, options.batch);
  steps_ = rows / options.batch + (options.keep_partial && rows % options.batch != 0);
  order_.resize(static_cast<std::size_t>(rows));
  std::iota(order_.begin(), order_.end(), 0);
}

std::span<const std::int64_t> Batcher::rows(std::uint32_t epoch, std::int64_t step) {
  check(step >= 0 && step < steps_, ErrorKind::kUsage, "[batcher] step: expected 0 to {}, got {}",
        steps_ - 1, step);
  if (options_.shuffle && epoch_ != epoch) permute(epoch);
  const std::span<const std::int64_t> order(order_);
  const auto first = static_cast<std::size_t>(step * options_.batch);
  return order.subspan(first,
                       std::min(static_cast<std::size_t>(options_.batch), order.size() - first));
}

// From the identity, so that no epoch depends on the one before.
void Batcher::permute(std::uint32_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  shuffle(order_, Philox(options_.seed, kOrderStream, epoch));
  epoch_ = epoch;
}

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
