// Layer norm normalizes a row by its own mean and variance; it has gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_affine.cuh"
#include "src/ops/norm/layer_norm.h"

namespace keel::cuda {
namespace {

using In = LayerNormInput;
using BackIn = LayerNormBackwardInput;

// Takes a row of x as the one group of a sample.
GroupSizes groups_of(const Shape& x, std::int64_t axes) {
  const RowSizes rows = row_sizes(x, axes);
  return {rows.rows, 1, rows.width, 1};
}

// Writes the part of the true means that the saved means, which are floats, lack.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    refine_means(Data x, Global<const float> mean, RowSizes sizes, Global<float> fine) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x}, sizes);
  const Mean refined = refine_mean(row, sizes.width, mean[row.index()]);
  if (row.is_first()) fine[row.index()] = refined.fine;
}

// The terms that an element adds to dgain and dbias of its channel.
struct AffineTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = kAffineSums;
  Data tensors[kTensors];  // x, dy
  Global<const float> mean, rstd, fine;
  std::int64_t groups, channels;  // of a sample; of a group

  AffineTerms(const CentredBackward& a, Global<const float> fine, const GroupSizes& s)
      : tensors{a.x, a.dy},
        mean(a.mean),
        rstd(a.rstd),
        fine(fine),
        groups(s.groups),
        channels(s.channels) {}
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel& c,
                             double (&sums)[kSums]) const {
    const std::int64_t row = groups == 1 ? step.row : step.row * groups + c.index / channels;
    // Of an element that does not exist, 0 less the mean may be too much for a float.
    const float xhat = step.exists ? Xhat({mean[row], fine[row]}, rstd[row])(of[0]) : 0;
    sums[0] += double(of[1]) * xhat;
    sums[1] += of[1];
  }
};

}  // namespace

void run_affine_gradients(const Binding& b, const CentredBackward& args, const GroupSizes& s) {
  const auto fine = workspace(b, args.sizes.rows);
  with_short_row<1>(args.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(refine_means<R>, grid_of_rows(row, args.sizes.rows), args.x, args.mean, args.sizes,
           fine);
  });
  const ColumnSizes columns = affine_columns(s);
  column_sums(columns, AffineTerms(args, fine, s),
              workspace<double>(b, partial_sums(columns, kAffineSums), fine_bytes(s)),
              StoreSums<kAffineSums>{{output(b.outputs[AffineGradient::kDgain]),
                                      output(b.outputs[AffineGradient::kDbias])}});
}

void run_affine_rows(const Binding& b, const GroupSizes& sizes, const NormStatistic& statistic) {
  run_affine_forward<false>(b, sizes, statistic);
}

void run_affine_rows_backward(const Binding& b, const GroupSizes& sizes,
                              const NormStatistic& statistic) {
  run_affine_backward<false>(b, sizes, statistic);
}

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto& attrs = context.attrs<LayerNormAttrs>();
  const GroupSizes sizes = groups_of(context.input(In::kX).shape, attrs.axes);
  const NormStatistic statistic = attrs.statistic();
  return kernel_of([=](const Binding& b) { run_affine_rows(b, sizes, statistic); });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto& attrs = context.attrs<LayerNormBackwardAttrs>();
  const GroupSizes sizes = groups_of(context.input(BackIn::kX).shape, attrs.axes);
  const NormStatistic statistic = attrs.statistic();
  return kernel_of([=](const Binding& b) { run_affine_rows_backward(b, sizes, statistic); },
                   affine_workspace(sizes));
}

}  // namespace keel::cuda
