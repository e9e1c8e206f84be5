// Dropout. The backward is the same map, applied to dy with the same mask.
#include "src/ops/dropout.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = DropoutInput;

// y = keep ? x / (1 - p) : 0.
void run(const Binding& b, const DropoutAttrs& attrs) {
  const auto [rows, width] = sampled_rows(b.inputs[In::kX].type.shape);
  const Philox random = random_stream(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const std::int64_t first_row = *b.inputs[In::kFirstRow].as<std::int32_t>();
  const Matrix x = matrix(b.inputs[In::kX], rows, width);
  Matrix y = matrix(b.outputs[0], rows, width);
  for (Eigen::Index r = 0; r < rows; ++r) {
    for (Eigen::Index e = 0; e < width; ++e) {
      const double sampled = random.row_uniform(std::uint64_t(first_row + r), std::uint64_t(e));
      y(r, e) = sampled >= attrs.p ? x(r, e) / (1 - attrs.p) : 0;
    }
  }
}

}  // namespace

Prepared prepare_dropout(const NodeContext& context) {
  const auto attrs = context.attrs<DropoutAttrs>();
  return kernel_of([=](const Binding& b) { run(b, attrs); });
}

}  // namespace keel::reference
