// Layer norm: a row by its own mean and variance, with gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_row.cuh"
#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "src/ops/norm/layer_norm.h"

namespace keel::cuda {
namespace {

struct Forward {
  Global<const float> x;
  AlongRow gain, bias;
  Global<float> y, mean, rstd;
  RowSizes sizes;
  Statistic statistic;
};

template <class R>
__global__ void __launch_bounds__(R::kBlock) forward(Forward a) {
  const std::int64_t r = R::index();
  if (r >= a.sizes.rows) return;
  const R row({a.x}, r, a.sizes.width);
  const Mean mean = row_mean(row, a.sizes.width);
  const float rstd = a.statistic.rstd(row_squares(row, mean), a.sizes.width);
  row.store(a.y, [=](std::int64_t column, float x) {
    return mean.residual(x) * rstd * a.gain(column) + a.bias(column);
  });
  if (R::is_first()) {
    a.mean[r] = mean.coarse + mean.fine;
    a.rstd[r] = rstd;
  }
}

struct Backward {
  Global<const float> x, dy;
  AlongRow gain;
  Global<const float> mean, rstd;
  Global<float> dx;
  RowSizes sizes;
  Statistic statistic;
};

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = dy * gain.
template <class R>
__global__ void __launch_bounds__(R::kBlock) backward(Backward a) {
  const std::int64_t r = R::index();
  if (r >= a.sizes.rows) return;
  const R row({a.x, a.dy}, r, a.sizes.width);
  const Mean mean = refine_mean(row, a.sizes.width, a.mean[r]);
  const float rstd = a.rstd[r], n = float(a.sizes.width);
  const float mean_g =
      row.sum([=](std::int64_t column, float, float dy) { return dy * a.gain(column); }) / n;
  const float slope = row.sum([=](std::int64_t column, float x, float dy) {
    return (dy * a.gain(column) - mean_g) * (mean.residual(x) * rstd);
  });
  const float c =
      float(slope / a.statistic.divisor(a.sizes.width)) * a.statistic.outside_factor(rstd);
  row.store(a.dx, [=](std::int64_t column, float x, float dy) {
    return rstd * (dy * a.gain(column) - mean_g - mean.residual(x) * rstd * c);
  });
}

// What the saved means lack, for the parameters' gradients.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    refine_means(Global<const float> x, Global<const float> mean, RowSizes sizes,
                 Global<float> fine) {
  const std::int64_t r = R::index();
  if (r >= sizes.rows) return;
  const R row({x}, r, sizes.width);
  const Mean refined = refine_mean(row, sizes.width, mean[r]);
  if (R::is_first()) fine[r] = refined.fine;
}

// What a row adds to dgain and dbias.
struct ParameterTerms {
  static constexpr int kSums = 2;
  Global<const float> x, dy, mean, rstd, fine;

  __device__ void operator()(std::int64_t i, std::int64_t row, std::int64_t,
                             double (&sums)[kSums]) const {
    const float xhat = Mean{mean[row], fine[row]}.residual(x[i]) * rstd[row];
    sums[0] += double(dy[i]) * xhat;
    sums[1] += dy[i];
  }
};

Forward forward_args(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  return {input(b.inputs[0]),
          {input(b.inputs[1]), 1},
          {input(b.inputs[2]), 0},
          output(b.outputs[0]),
          output(b.outputs[1]),
          output(b.outputs[2]),
          sizes,
          device_statistic(attrs.statistic())};
}

// dgain and dbias come first, for dx may take the place of dy.
void run_parameters(const Binding& b, const RowSizes& sizes) {
  const auto x = input(b.inputs[0]), mean = input(b.inputs[2]);
  const auto fine = workspace(b, sizes.rows);
  with_row<1>(sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(refine_means<R>, grid_of_rows(row, sizes.rows), x, mean, sizes, fine);
  });
  const ParameterTerms terms{x, input(b.inputs[4]), mean, input(b.inputs[3]), fine};
  const ColumnSizes columns{sizes.rows, sizes.width, 1};
  column_sums(columns, terms,
              workspace<double>(b, partial_sums(columns, 2), aligned_bytes(sizes.rows * 4)),
              StoreSums<2>{{output(b.outputs[1]), output(b.outputs[2])}});
}

void run_backward(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  if (b.outputs[1] || b.outputs[2]) run_parameters(b, sizes);
  const Backward args{input(b.inputs[0]),
                      input(b.inputs[4]),
                      {input(b.inputs[1]), 1},
                      input(b.inputs[2]),
                      input(b.inputs[3]),
                      output(b.outputs[0]),
                      sizes,
                      device_statistic(attrs.statistic())};
  with_row<2>(sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(backward<R>, grid_of_rows(row, sizes.rows), args);
  });
}

}  // namespace

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    with_row<1>(sizes.width, [&]<class R>(std::type_identity<R> row) {
      launch(forward<R>, grid_of_rows(row, sizes.rows), forward_args(b, sizes, attrs));
    });
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  const std::int64_t partial = partial_sums({sizes.rows, sizes.width, 1}, 2) * 8;
  return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs); },
                   aligned_bytes(sizes.rows * 4) + partial);
}

}  // namespace keel::cuda
