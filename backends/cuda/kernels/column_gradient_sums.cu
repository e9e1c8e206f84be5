// The sums for the backwards of column norms, made of the same terms as in these backwards.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_columns.cuh"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/column_gradient_sums.h"

namespace keel::cuda {
namespace {

struct WriteCentred {
  Global<double> to;
  std::int64_t channels;
  bool padding;

  __device__ void operator()(std::int64_t c, GradientSums of) const {
    to[CentredSumRow::kCount * channels + c] = of.count;
    to[CentredSumRow::kAll * channels + c] = of.all;
    to[CentredSumRow::kXhat * channels + c] = of.xhat;
    to[CentredSumRow::kDy * channels + c] = of.dy;
    to[CentredSumRow::kDyXhat * channels + c] = of.dy_xhat;
    if (padding) to[CentredSumRow::kPaddingDy * channels + c] = of.padding_dy;
  }
};

void centred(const Binding& b, const ColumnSizes& sizes, bool padding) {
  using In = CentredSumsInput;
  centred_sums(sizes, ColumnScratch(b, sizes, GradientTerms::kSums),
               {Data(b.inputs[In::kX]),
                Data(b.inputs[In::kDy]),
                {},
                input(b.inputs[In::kMean]),
                input(b.inputs[In::kRstd]),
                {},
                kept_rows(b.inputs[In::kMask]),
                {},
                true,
                {}},
               WriteCentred{global<double>(b.outputs[0]), sizes.channels, padding});
}

struct WriteUncentred {
  Global<double> to;
  std::int64_t channels;
  bool all_rows;

  __device__ void operator()(std::int64_t c, UncentredGradientSums of) const {
    to[UncentredSumRow::kCount * channels + c] = of.count;
    to[UncentredSumRow::kAll * channels + c] = of.all;
    to[UncentredSumRow::kDy * channels + c] = of.dy;
    to[UncentredSumRow::kDyXhat * channels + c] = of.dy_xhat;
    if (all_rows) to[UncentredSumRow::kAllDyXhat * channels + c] = of.all_dy_xhat;
  }
};

void uncentred(const Binding& b, const ColumnSizes& sizes, bool all_rows) {
  using In = UncentredSumsInput;
  uncentred_sums(b, sizes,
                 {Data(b.inputs[In::kX]),
                  Data(b.inputs[In::kDy]),
                  input(b.inputs[In::kRstd]),
                  {},
                  {},
                  {},
                  kept_rows(b.inputs[In::kMask]),
                  {},
                  true,
                  {}},
                 WriteUncentred{global<double>(b.outputs[0]), sizes.channels, all_rows});
}

}  // namespace

Prepared prepare_centred_gradient_sums(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(CentredSumsInput::kX).shape);
  const bool padding = context.attrs<CentredSumsAttrs>().padding;
  return kernel_of([=](const Binding& b) { centred(b, sizes, padding); },
                   ColumnScratch::bytes(sizes, GradientTerms::kSums, 0));
}

Prepared prepare_uncentred_gradient_sums(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(UncentredSumsInput::kX).shape);
  const bool all_rows = context.attrs<UncentredSumsAttrs>().all_rows;
  return kernel_of([=](const Binding& b) { uncentred(b, sizes, all_rows); },
                   ColumnScratch::bytes(sizes, kUncentredGradientSums, 0));
}

}  // namespace keel::cuda
