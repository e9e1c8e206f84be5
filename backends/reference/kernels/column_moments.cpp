// Reference statistics of column norms, and the merge of the statistics of several shards.
#include "src/ops/column_moments.h"

#include "backends/reference/kernels/norm/column_sums.h"

namespace keel::reference {
namespace {

using In = ColumnMomentsInput;

// Writes `values` to column c of (values, channels).
void put_column(const TensorRef& t, Eigen::Index c, std::initializer_list<double> values) {
  Eigen::Index row = 0;
  for (double value : values) t.as<double>()[t.type.shape[1] * row++ + c] = value;
}

void moments(const Binding& b, const ColumnSizes& sizes) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const Moments of = form_moments(b.inputs[In::kX], {sizes, rows}, c);
    put_column(b.outputs[0], c, {of.count, of.all, of.mean, of.squares});
  }
}

void squares(const Binding& b, const ColumnSizes& sizes, bool all_rows) {
  const KeptRows rows = kept_rows(b.inputs[In::kMask], sizes);
  for (Eigen::Index c = 0; c < sizes.channels; ++c) {
    const Squares of = form_squares(b.inputs[In::kX], {sizes, rows}, c, all_rows);
    put_column(b.outputs[0], c, {of.count, of.all, of.kept});
    if (all_rows)
      b.outputs[0].as<double>()[SquareRow::kAllSquares * sizes.channels + c] = of.of_all;
  }
}

// mean += d k / (n + k), squares += squares' + d^2 n k / (n + k), shard after shard.
void merge_moments(const Binding& b) {
  using Row = MomentRow;
  const Shape& parts = b.inputs[0].type.shape;
  const auto part = [&](std::int64_t shard, int row, Eigen::Index c) {
    return b.inputs[0].as<double>()[(shard * parts[1] + row) * parts[2] + c];
  };
  for (Eigen::Index c = 0; c < parts[2]; ++c) {
    Moments of{0, 0};
    for (std::int64_t shard = 0; shard < parts[0]; ++shard) {
      const double more = part(shard, Row::kCount, c);
      of.all += part(shard, Row::kAll, c);
      if (more == 0) continue;
      const double share = more / (of.count + more), d = part(shard, Row::kMean, c) - of.mean;
      of.squares += part(shard, Row::kSquares, c) + d * d * (of.count * share);
      of.mean += d * share;
      of.count += more;
    }
    put_column(b.outputs[0], c, {of.count, of.all, of.mean, of.squares});
  }
}

void merge_sums(const Binding& b) {
  const Shape& parts = b.inputs[0].type.shape;
  const Matrix of_shards = matrix(b.inputs[0], parts[0], parts[1] * parts[2]);
  vector(b.outputs[0]) = of_shards.row(0);
  for (Eigen::Index shard = 1; shard < parts[0]; ++shard) {
    vector(b.outputs[0]) += of_shards.row(shard);
  }
}

}  // namespace

Prepared prepare_column_moments(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { moments(b, sizes); });
}

Prepared prepare_column_squares(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const bool all_rows = context.attrs<ColumnSquaresAttrs>().all_rows;
  return kernel_of([=](const Binding& b) { squares(b, sizes, all_rows); });
}

Prepared prepare_merge_moments(const NodeContext&) { return kernel_of(merge_moments); }
Prepared prepare_merge_sums(const NodeContext&) { return kernel_of(merge_sums); }

}  // namespace keel::reference
