// Matrix products in place of cuBLASLt: plain loops with sums in double, then rounded to float.
#include "backends/cuda/matmul.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cuda/emulator/simt.h"
#include "backends/cuda/runtime.h"
#include "src/core/bf16.h"

namespace keel::cuda {
namespace {

// The nearest number with 10 bits of mantissa, as tensor cores take factors.
float to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = (1 << 13) - 1;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + kDropped / 2 + (bits >> 13 & 1)) & ~kDropped);
}

// Element (row, column) of the (rows, columns) matrix that is stored at `data`, transposed or not.
struct Factor {
  const void* data;
  std::int64_t first;  // element of `data`
  std::int64_t rows, columns;
  bool transposed, tf32, is_narrow;

  double at(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = first + (transposed ? column * rows + row : row * columns + column);
    if (is_narrow) return double(float(static_cast<const BF16*>(data)[i]));
    const float value = static_cast<const float*>(data)[i];
    return tf32 ? to_tf32(value) : value;
  }
};

// Row `row` of the product, added up in `sums`.
void multiply_row(const Factor& a, const Factor& b, std::int64_t row, std::vector<double>& sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::int64_t i = 0; i < a.columns; ++i) {
    const double left = a.at(row, i);
    for (std::int64_t j = 0; j < b.columns; ++j) sums[std::size_t(j)] += left * b.at(i, j);
  }
}

// cuBLASLt is told of this alignment and may choose instructions that need it.
void expect_aligned(const void* data, std::int64_t alignment, const char* what) {
  check(reinterpret_cast<std::uintptr_t>(data) % std::uintptr_t(alignment) == 0,
        ErrorKind::kCheckFailed, "[emulator] a product's {} is not aligned to {} bytes", what,
        alignment);
}

// Bytes. Every product fills them with NaN, so that whatever overlaps them is spoilt.
constexpr std::int64_t kWorkspace = 512;

void multiply(const Product& product, bool tf32, const ProductData& data) {
  expect_aligned(data.a, product.alignment, "first factor");
  expect_aligned(data.b, product.alignment, "second factor");
  expect_aligned(data.y, product.alignment, "result");
  expect_aligned(data.workspace, kAlignment, "workspace");
  std::memset(data.workspace, 0xFF, kWorkspace);
  const auto [batch, m, k, n, shared_b] = product.sizes;
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < batch; ++i) {
    const Factor a{data.a, i * m * k, m, k, product.transpose_a, tf32, product.is_narrow};
    const Factor b{data.b, shared_b ? 0 : i * k * n, k, n, product.transpose_b,
                   tf32,   product.is_narrow};
    for (std::int64_t row = 0; row < m; ++row) {
      multiply_row(a, b, row, sums);
      for (std::int64_t j = 0; j < n; ++j) {
        float value = float(sums[std::size_t(j)]) + (product.has_bias ? data.bias[j] : 0);
        if (product.relu && value <= 0) value = 0;  // NaN stays
        float& y = data.y[(i * m + row) * n + j];
        y = data.adds ? value + y : value;
      }
    }
  }
}

}  // namespace

std::string product_library() { return "loops in place of cuBLASLt"; }

ProductPlan plan_product(const Product& product) {
  return {[product, tf32 = current_device().tf32()](const ProductData& data) {
            simt::enqueue([=] { multiply(product, tf32, data); });
          },
          kWorkspace};
}

}  // namespace keel::cuda
