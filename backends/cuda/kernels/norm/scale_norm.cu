// Scaled l2 norm divides a row by its length and multiplies it by one gain.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {
namespace {

using In = ScaleNormInput;
using Out = ScaleNormOutput;
using BackIn = ScaleNormBackwardInput;
using BackOut = ScaleNormGradient;

// y = gain * x * rstd, rstd = 1 / max(|x|, eps), which is saved.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    forward(Data x, Global<const float> gain, Result y, Global<float> rstd, RowSizes sizes,
            double eps) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x}, sizes);
  const double norm = sqrt(row_squares(row, Mean{}));
  const float scale = float(1 / (norm < eps ? eps : norm)), factor = gain.get(0, 1);
  row.store(y, [=](std::int64_t, float value) { return factor * (value * scale); });
  if (row.is_first()) rstd[row.index()] = scale;
}

// dx = gain * rstd * (dy - xhat * sum(dy * xhat)), without the sum where rstd is 1 / eps. The sum
// is what the row adds to dgain; it is left in `products`.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    backward(ScaledBackward a, Global<const float> gain, Global<float> products, float clamped) {
  if (R::is_idle(a.sizes.rows)) return;
  const R row({a.x, a.dy}, a.sizes);
  const float rstd = a.scale[row.index()];
  const float product = row.sum([=](std::int64_t, float x, float dy) { return dy * (x * rstd); });
  const float slope = rstd == clamped ? 0 : product, factor = gain.get(0, 1) * rstd;
  row.store(a.dx,
            [=](std::int64_t, float x, float dy) { return factor * (dy - x * rstd * slope); });
  if (row.is_first()) products[row.index()] = product;
}

struct RowTerms : PlainSums {
  static constexpr int kTensors = 1, kSums = 1;
  Global<const float> tensors[kTensors];  // products
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += of[0];
  }
};

// The products lie in the workspace before their sums.
std::int64_t product_bytes(const RowSizes& sizes) {
  return aligned_bytes(sizes.rows * std::int64_t{sizeof(float)});
}

void run_backward(const Binding& b, const RowSizes& sizes, double eps) {
  const auto gain = input(b.inputs[BackIn::kGain]);
  const auto products = workspace(b, sizes.rows);
  const ScaledBackward args{
      Data(b.inputs[BackIn::kX]),     Data(b.inputs[BackIn::kDy]),     {{}, 1},
      input(b.inputs[BackIn::kRstd]), Result(b.outputs[BackOut::kDx]), sizes};
  with_row<2>(sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(backward<R>, grid_of_rows(row, sizes.rows), args, gain, products, float(1 / eps));
  });
  if (!b.outputs[BackOut::kDgain]) return;
  const ColumnSizes column{sizes.rows, 1, 1};
  column_sums(column, RowTerms{{}, {products}},
              workspace<double>(b, partial_sums(column, 1), product_bytes(sizes)),
              StoreSums<1>{{output(b.outputs[BackOut::kDgain])}});
}

}  // namespace

Prepared prepare_scale_norm(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    with_row<1>(sizes.width, [&]<class R>(std::type_identity<R> row) {
      launch(forward<R>, grid_of_rows(row, sizes.rows), Data(b.inputs[In::kX]),
             input(b.inputs[In::kGain]), Result(b.outputs[Out::kY]), output(b.outputs[Out::kRstd]),
             sizes, attrs.eps);
    });
  });
}

Prepared prepare_scale_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs.eps); },
                   product_bytes(sizes) + partial_sums({sizes.rows, 1, 1}, 1) * 8);
}

}  // namespace keel::cuda
