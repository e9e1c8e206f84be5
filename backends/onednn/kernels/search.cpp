// The best candidates of a row, and the memory of the results of earlier steps.
#include "src/ops/search.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

// The best so far, in order, at values and indices. Most elements are worse than all of them, which
// one comparison tells.
void rank_row(const float* row, std::int64_t width, std::int64_t k, float* values,
              std::int32_t* indices) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    const float x = row[i];
    if (found == k && x <= values[k - 1]) continue;
    if (found == k && !stands_before(x, i, values[k - 1], std::int64_t{indices[k - 1]})) continue;
    std::int64_t place = found < k ? found++ : k - 1;
    for (; place > 0 && stands_before(x, i, values[place - 1], std::int64_t{indices[place - 1]});
         --place) {
      values[place] = values[place - 1];
      indices[place] = indices[place - 1];
    }
    values[place] = x;
    indices[place] = std::int32_t(i);
  }
}

void top_k(const Binding& b, std::int64_t k) {
  const Shape& shape = b.inputs[0].type.shape;
  const std::int64_t width = shape[1];
  parallel_range(shape[0], kBlockElements / width + 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      rank_row(b.inputs[0].as<float>() + r * width, width, k,
               b.outputs[TopKOutput::kValues].as<float>() + r * k,
               b.outputs[TopKOutput::kIndices].as<std::int32_t>() + r * k);
    }
  });
}

void scatter(const Binding& b) {
  using In = ScatterInput;
  const auto [rows, length, width] = memory_sizes(b.outputs[0].type.shape);
  const std::int32_t t = *b.inputs[In::kT].as<std::int32_t>();
  const float *memory = b.inputs[In::kMemory].as<float>(), *x = b.inputs[In::kX].as<float>();
  float* y = b.outputs[0].as<float>();
  if (y != memory) {
    parallel_range(rows * length * width, 4 * kBlockElements,
                   [&](std::int64_t begin, std::int64_t end) {
                     std::copy(memory + begin, memory + end, y + begin);
                   });
  }
  if (t < 0 || t >= length) {
    if (rows * length * width > 0) y[0] = NAN;
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * width, width, y + (r * length + t) * width);
  }
}

}  // namespace

Prepared prepare_top_k(const NodeContext& context) {
  const std::int64_t k = context.attrs<TopKAttrs>().k;
  return kernel_of([k](const Binding& b) { top_k(b, k); });
}

Prepared prepare_scatter(const NodeContext&) { return kernel_of(scatter); }

}  // namespace keel::onednn
