// The noise after a batch norm, sampled one channel after the other.
#include "src/ops/norm_noise.h"

#include "backends/reference/kernels/norm/channels.h"

namespace keel::reference {
namespace {

using In = NormNoiseInput;

// y = S * x + M, or without the shift y = S * x.
void run(const Binding& b, const NormNoiseAttrs& attrs, const ColumnSizes& sizes, bool shifts) {
  const Philox random = random_stream(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const std::int32_t first_row = *b.inputs[In::kFirstRow].as<std::int32_t>();
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  for (Eigen::Index j = 0; j < sizes.channels; ++j) {
    const UnitNoise unit = unit_noise(attrs, random, j);
    auto y = channel(b.outputs[0], sizes, j);
    y = channel(b.inputs[In::kX], sizes, j);
    for (Eigen::Index i : rows) {
      const auto [row, first] = sample_place(i, attrs.positions, sizes.channels, first_row);
      const std::uint64_t k = first + 4 * static_cast<std::uint64_t>(j);
      const double s = unit.v + attrs.r_std * random.row_normal(row, k / 2 + 1);
      const double m = unit.m + attrs.r_mean * (2 * random.row_uniform(row, k) - 1);
      y.row(i) = (y.row(i).array() * s + (shifts ? m : 0)).matrix();
    }
  }
}

Prepared prepare(const NodeContext& context, bool shifts) {
  const auto attrs = context.attrs<NormNoiseAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { run(b, attrs, sizes, shifts); });
}

}  // namespace

Prepared prepare_norm_noise(const NodeContext& context) { return prepare(context, true); }
Prepared prepare_norm_noise_backward(const NodeContext& context) { return prepare(context, false); }

}  // namespace keel::reference
