// The statistics of column norms, made of the same sums as in the norms themselves, and the merge
// of the statistics of several shards.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_columns.cuh"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/column_moments.h"

namespace keel::cuda {
namespace {

using In = ColumnMomentsInput;

struct WriteMoments {
  Global<double> to;
  std::int64_t channels;

  __device__ void operator()(std::int64_t c, Moments of) const {
    to[MomentRow::kCount * channels + c] = of.count;
    to[MomentRow::kAll * channels + c] = of.all;
    to[MomentRow::kMean * channels + c] = of.mean;
    to[MomentRow::kSquares * channels + c] = of.squares;
  }
};

struct WriteSquares {
  Global<double> to;
  std::int64_t channels;
  bool all_rows;

  __device__ void operator()(std::int64_t c, SquareSums of) const {
    to[SquareRow::kCount * channels + c] = of.count;
    to[SquareRow::kAll * channels + c] = of.all;
    to[SquareRow::kSquares * channels + c] = of.squares;
    if (all_rows) to[SquareRow::kAllSquares * channels + c] = of.all_squares;
  }
};

void write_moments(const Binding& b, const ColumnSizes& sizes) {
  column_moments(sizes, ColumnScratch(b, sizes, MomentTerms::kSums),
                 {Data(b.inputs[In::kX]), kept_rows(b.inputs[In::kMask]), {}},
                 WriteMoments{global<double>(b.outputs[0]), sizes.channels});
}

void write_squares(const Binding& b, const ColumnSizes& sizes, bool all_rows) {
  sum_squares(b, sizes, {kept_rows(b.inputs[In::kMask]), {}},
              WriteSquares{global<double>(b.outputs[0]), sizes.channels, all_rows});
}

// One thread a channel: with n elements so far and k more, and d the difference of the means,
// mean += d k / (n + k) and squares += squares' + d^2 n k / (n + k).
struct MergeMoments {
  Global<const double> parts;
  std::int64_t shards, channels;
  WriteMoments write;

  __device__ void operator()(std::int64_t c) const {
    Moments of{};
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const std::int64_t first = shard * MomentRow::kRows * channels + c;
      const double more = parts[first + MomentRow::kCount * channels];
      of.all += parts[first + MomentRow::kAll * channels];
      if (more == 0) continue;
      const double share = more / (of.count + more);
      const double d = parts[first + MomentRow::kMean * channels] - of.mean;
      of.squares += parts[first + MomentRow::kSquares * channels] + d * d * (of.count * share);
      of.mean += d * share;
      of.count += more;
    }
    write(c, of);
  }
};

// One thread a sum, of which each shard has n.
struct MergeSums {
  Global<const double> parts;
  std::int64_t shards, n;
  Global<double> to;

  __device__ void operator()(std::int64_t i) const {
    double sum = parts[i];
    for (std::int64_t shard = 1; shard < shards; ++shard) sum += parts[shard * n + i];
    to[i] = sum;
  }
};

void merge_moments(const Binding& b) {
  const Shape& parts = b.inputs[0].type.shape;
  const auto to = global<double>(b.outputs[0]);
  each_channel({1, parts[2], 1},
               MergeMoments{global<const double>(b.inputs[0]), parts[0], parts[2], {to, parts[2]}});
}

void merge_sums(const Binding& b) {
  const Shape& parts = b.inputs[0].type.shape;
  const std::int64_t n = parts[1] * parts[2];
  each_channel({1, n, 1}, MergeSums{global<const double>(b.inputs[0]), parts[0], n,
                                    global<double>(b.outputs[0])});
}

}  // namespace

Prepared prepare_column_moments(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  return kernel_of([=](const Binding& b) { write_moments(b, sizes); },
                   ColumnScratch::bytes(sizes, MomentTerms::kSums, 0));
}

Prepared prepare_column_squares(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const bool all_rows = context.attrs<ColumnSquaresAttrs>().all_rows;
  return kernel_of([=](const Binding& b) { write_squares(b, sizes, all_rows); },
                   uncentred_workspace(sizes, false));
}

Prepared prepare_merge_moments(const NodeContext&) { return kernel_of(merge_moments); }
Prepared prepare_merge_sums(const NodeContext&) { return kernel_of(merge_sums); }

}  // namespace keel::cuda
