// Root mean square norm: a row by its quadratic mean, with gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/row_norm.h"

namespace keel::cuda {
namespace {

// What an element adds to dgain and dbias.
struct ParameterTerms {
  static constexpr int kSums = 2;
  Global<const float> x, dy, rrms;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    sums[0] += double(dy[i]) * (x[i] * rrms[row]);
    sums[1] += dy[i];
  }
};

// The parameters come first, for dx may take the place of dy.
void run_backward(const Binding& b, const RowSizes& sizes) {
  const auto x = input(b.inputs[0]), rrms = input(b.inputs[2]), dy = input(b.inputs[3]);
  if (b.outputs[1] || b.outputs[2]) {
    const ColumnSizes columns{sizes.rows, sizes.width, 1};
    column_sums(columns, ParameterTerms{x, dy, rrms},
                workspace<double>(b, partial_sums(columns, ParameterTerms::kSums)),
                StoreSums<2>{{output(b.outputs[1]), output(b.outputs[2])}});
  }
  run_scaled_backward({x, dy, {input(b.inputs[1]), 1}, rrms, output(b.outputs[0]), sizes});
}

}  // namespace

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    run_scaled_forward({input(b.inputs[0]),
                        {input(b.inputs[1]), 1},
                        {input(b.inputs[2]), 0},
                        output(b.outputs[0]),
                        output(b.outputs[1]),
                        sizes},
                       QuadraticMean{attrs.eps});
  });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const RowSizes sizes = row_sizes(context.input(0).shape, context.attrs<RmsNormAttrs>().axes);
  const std::int64_t partial = partial_sums({sizes.rows, sizes.width, 1}, ParameterTerms::kSums);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); },
                   partial * std::int64_t{sizeof(double)});
}

}  // namespace keel::cuda
