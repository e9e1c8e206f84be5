// The best candidates of a row, and the memory of the results of earlier steps.
#include "src/ops/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

void top_k(const Binding& b, std::int64_t k) {
  const Shape& shape = b.inputs[0].type.shape;
  const double* row = b.inputs[0].as<double>();
  double* value = b.outputs[TopKOutput::kValues].as<double>();
  std::int32_t* index = b.outputs[TopKOutput::kIndices].as<std::int32_t>();
  std::vector<std::int32_t> order(static_cast<std::size_t>(shape[1]));
  for (std::int64_t r = 0; r < shape[0]; ++r, row += shape[1]) {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [row](std::int32_t i, std::int32_t j) {
      return stands_before(row[i], i, row[j], j);
    });
    for (std::int64_t i = 0; i < k; ++i) {
      *index++ = order[std::size_t(i)];
      *value++ = row[order[std::size_t(i)]];
    }
  }
}

void scatter(const Binding& b) {
  using In = ScatterInput;
  const auto [rows, length, width] = memory_sizes(b.outputs[0].type.shape);
  const std::int32_t t = *b.inputs[In::kT].as<std::int32_t>();
  double* y = b.outputs[0].as<double>();
  if (y != b.inputs[In::kMemory].as<double>()) {
    std::copy_n(b.inputs[In::kMemory].as<double>(), rows * length * width, y);
  }
  if (t < 0 || t >= length) {
    if (rows * length * width > 0) y[0] = NAN;
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(b.inputs[In::kX].as<double>() + r * width, width, y + (r * length + t) * width);
  }
}

}  // namespace

Prepared prepare_top_k(const NodeContext& context) {
  const std::int64_t k = context.attrs<TopKAttrs>().k;
  return kernel_of([k](const Binding& b) { top_k(b, k); });
}

Prepared prepare_scatter(const NodeContext&) { return kernel_of(scatter); }

}  // namespace keel::reference
