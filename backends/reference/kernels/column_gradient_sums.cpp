// Reference sums for the backwards of column norms, one channel after the other.
#include "src/ops/column_gradient_sums.h"

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

void centred(const Binding& b, const ColumnSizes& sizes, bool padding) {
  using In = CentredSumsInput;
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  Matrix to = matrix(b.outputs[0], centred_sum_rows(padding), sizes.channels);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const CentredTensors tensors{b.inputs[In::kX], b.inputs[In::kDy],
                                 vector(b.inputs[In::kMean])[c], vector(b.inputs[In::kRstd])[c]};
    const CentredSums of = form_sums(tensors, {sizes, rows}, c);
    const double values[] = {of.count, of.all, of.xhat, of.dy, of.dy_xhat, of.padding_dy};
    for (Eigen::Index row = 0; row < to.rows(); ++row) to(row, c) = values[row];
  }
}

void uncentred(const Binding& b, const ColumnSizes& sizes, bool all_rows) {
  using In = UncentredSumsInput;
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  Matrix to = matrix(b.outputs[0], uncentred_sum_rows(all_rows), sizes.channels);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const UncentredTensors tensors{b.inputs[In::kX], b.inputs[In::kDy],
                                   vector(b.inputs[In::kRstd])[c]};
    const UncentredSums of = form_sums(tensors, {sizes, rows}, c, all_rows);
    const double values[] = {of.count, of.all, of.dy, of.dy_xhat, of.all_dy_xhat};
    for (Eigen::Index row = 0; row < to.rows(); ++row) to(row, c) = values[row];
  }
}

}  // namespace

Prepared prepare_centred_gradient_sums(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(CentredSumsInput::kX).shape);
  const bool padding = context.attrs<CentredSumsAttrs>().padding;
  return kernel_of([=](const Binding& b) { centred(b, sizes, padding); });
}

Prepared prepare_uncentred_gradient_sums(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(UncentredSumsInput::kX).shape);
  const bool all_rows = context.attrs<UncentredSumsAttrs>().all_rows;
  return kernel_of([=](const Binding& b) { uncentred(b, sizes, all_rows); });
}

}  // namespace keel::reference
