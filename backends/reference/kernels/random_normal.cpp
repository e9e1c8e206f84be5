// Standard normal numbers, sampled one after the other.
#include "src/ops/random_normal.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = RandomNormalInput;

void run(const Binding& b, const RandomNormalAttrs& attrs) {
  const auto [rows, width] = sampled_rows(attrs.shape);
  const Philox random = random_stream(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const std::int64_t first_row = *b.inputs[In::kFirstRow].as<std::int32_t>();
  Matrix y = matrix(b.outputs[0], rows, width);
  for (Eigen::Index r = 0; r < rows; ++r) {
    for (Eigen::Index e = 0; e < width; ++e) {
      y(r, e) = random.row_normal(std::uint64_t(first_row + r), std::uint64_t(e));
    }
  }
}

}  // namespace

Prepared prepare_random_normal(const NodeContext& context) {
  const auto attrs = context.attrs<RandomNormalAttrs>();
  return kernel_of([=](const Binding& b) { run(b, attrs); });
}

}  // namespace keel::reference
