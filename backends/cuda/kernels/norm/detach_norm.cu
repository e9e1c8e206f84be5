// Layer norm without parameters whose mean, variance or both are constants to the backward.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_row.cuh"
#include "src/ops/norm/detach_norm.h"

namespace keel::cuda {
namespace {

using In = DetachNormInput;
using Out = DetachNormOutput;
using BackIn = DetachNormBackwardInput;
using BackOut = DetachNormGradient;

struct Forward : Bare {
  __device__ float operator()(float xhat, float, float) const { return xhat; }
};

// dx = rstd * dy, or rstd * (dy - mean(dy)) where the mean is not detached. x is not needed.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    detached_variance(Data dy, Global<const float> rstd, Result dx, RowSizes sizes,
                      bool detach_mean) {
  if (R::is_idle(sizes.rows)) return;
  const R row({dy}, sizes);
  float mean = 0;
  if (!detach_mean) {
    mean = row.sum([](std::int64_t, float g) { return g; }) / float(sizes.width);
  }
  const float scale = rstd[row.index()];
  row.store(dx, [=](std::int64_t, float g) { return scale * (g - mean); });
}

// dx = rstd * (dy - xhat * sum(dy * xhat) / N * r).
template <class R>
__global__ void __launch_bounds__(R::kBlock) detached_mean(CentredBackward a) {
  if (R::is_idle(a.sizes.rows)) return;
  const R row({a.x, a.dy}, a.sizes);
  const Mean mean = refine_mean(row, a.sizes.width, a.mean[row.index()]);
  const float rstd = a.rstd[row.index()];
  const Xhat xhat(mean, rstd);
  const float sum = row.sum([=](std::int64_t, float x, float dy) { return dy * xhat(x); });
  const float slope =
      float(sum / a.statistic.divisor(a.sizes.width)) * a.statistic.outside_factor(rstd);
  row.store(a.dx, [=](std::int64_t, float x, float dy) { return rstd * (dy - xhat(x) * slope); });
}

void run_backward(const Binding& b, const RowSizes& sizes, const DetachNormAttrs& attrs) {
  const Data dy(b.inputs[BackIn::kDy]);
  const auto mean = input(b.inputs[BackIn::kMean]), rstd = input(b.inputs[BackIn::kRstd]);
  const Result dx(b.outputs[BackOut::kDx]);
  if (attrs.detach_variance) {
    with_row<1>(sizes.width, [&]<class R>(std::type_identity<R> row) {
      launch(detached_variance<R>, grid_of_rows(row, sizes.rows), dy, rstd, dx, sizes,
             attrs.detach_mean);
    });
    return;
  }
  const CentredBackward args{Data(b.inputs[BackIn::kX]),         dy, mean, rstd, dx, sizes,
                             device_statistic(attrs.statistic())};
  with_row<2>(sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(detached_mean<R>, grid_of_rows(row, sizes.rows), args);
  });
}

}  // namespace

Prepared prepare_detach_norm(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowSizes sizes = row_sizes(context.output().shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    run_centred_forward(
        {Data(b.inputs[In::kX]), Result(b.outputs[Out::kY]), output(b.outputs[Out::kMean]),
         output(b.outputs[Out::kRstd]), sizes, device_statistic(attrs.statistic())},
        Forward{});
  });
}

Prepared prepare_detach_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowSizes sizes = row_sizes(context.output().shape, attrs.axes);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs); });
}

}  // namespace keel::cuda
