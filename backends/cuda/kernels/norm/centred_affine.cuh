// Gain and bias of centred rows: layer norm, whose row has one of each for every element, and group
// norm, whose rows are groups of channels.
#pragma once

#include "backends/cuda/kernels/norm/centred_row.cuh"
#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "src/ops/norm/group_norm.h"

namespace keel::cuda {

// Which gain and bias belong to an element of a row.
struct OfColumn {
  __device__ std::int64_t operator()(std::int64_t, std::int64_t column) const { return column; }
};
struct OfChannel {
  GroupSizes sizes;
  __device__ std::int64_t operator()(std::int64_t group, std::int64_t column) const {
    return group % sizes.groups * sizes.channels + column / sizes.inner;
  }
};

template <class Index>
struct Affine {
  Global<const float> gain, bias;
  Index index;

  __device__ float operator()(std::int64_t row, std::int64_t column, float xhat) const {
    const std::int64_t i = index(row, column);
    return xhat * gain.get(i, 1) + bias.get(i, 0);
  }
};

template <class Index>
struct AffineGradient {
  Global<const float> gain;
  Index index;

  __device__ float operator()(std::int64_t row, std::int64_t column, float dy, float) const {
    return dy * gain.get(index(row, column), 1);
  }
};

// What the saved means lack.
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

// What an element adds to dgain and dbias of its channel.
struct AffineTerms {
  static constexpr int kSums = 2;
  Global<const float> x, dy, mean, rstd, fine;
  std::int64_t groups, channels;  // of a sample; of a group

  __device__ void operator()(std::int64_t i, std::int64_t sample, std::int64_t channel,
                             double (&sums)[kSums]) const {
    const std::int64_t row = groups == 1 ? sample : sample * groups + channel / channels;
    const float xhat = Mean{mean[row], fine[row]}.residual(x[i]) * rstd[row];
    sums[0] += double(dy[i]) * xhat;
    sums[1] += dy[i];
  }
};

inline ColumnSizes affine_columns(const GroupSizes& s) {
  return {s.samples, s.groups * s.channels, s.inner};
}
inline std::int64_t fine_bytes(const GroupSizes& s) {
  return aligned_bytes(s.samples * s.groups * std::int64_t{sizeof(float)});
}
inline std::int64_t affine_workspace(const GroupSizes& s) {
  return fine_bytes(s) +
         partial_sums(affine_columns(s), AffineTerms::kSums) * std::int64_t{sizeof(double)};
}

// dgain and dbias, as far as they are wanted. To be run before dx, which may take the place of dy.
inline void run_affine_gradients(const Binding& b, const CentredBackward& args,
                                 const GroupSizes& s) {
  if (!b.outputs[1] && !b.outputs[2]) return;
  const auto fine = workspace(b, args.sizes.rows);
  with_row<1>(args.sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(refine_means<R>, grid_of_rows(row, args.sizes.rows), args.x, args.mean, args.sizes,
           fine);
  });
  const ColumnSizes columns = affine_columns(s);
  const AffineTerms terms{args.x, args.dy, args.mean, args.rstd, fine, s.groups, s.channels};
  column_sums(columns, terms,
              workspace<double>(b, partial_sums(columns, AffineTerms::kSums), fine_bytes(s)),
              StoreSums<2>{{output(b.outputs[1]), output(b.outputs[2])}});
}

// The tensors of a node (x, gain, bias) -> (y, mean, rstd), or (x, gain, mean, rstd, dy) -> (dx,
// dgain, dbias).
inline CentredForward affine_forward(const Binding& b, const GroupSizes& s,
                                     const NormStatistic& statistic) {
  return {input(b.inputs[0]),
          output(b.outputs[0]),
          output(b.outputs[1]),
          output(b.outputs[2]),
          {s.samples * s.groups, s.width()},
          device_statistic(statistic)};
}
inline CentredBackward affine_backward(const Binding& b, const GroupSizes& s,
                                       const NormStatistic& statistic) {
  return {input(b.inputs[0]),         input(b.inputs[4]),   input(b.inputs[2]),
          input(b.inputs[3]),         output(b.outputs[0]), {s.samples * s.groups, s.width()},
          device_statistic(statistic)};
}

}  // namespace keel::cuda
