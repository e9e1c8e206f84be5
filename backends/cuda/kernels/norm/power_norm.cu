// PowerNorm divides a feature by a running quadratic mean and has a running term in its backward.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "backends/cuda/kernels/norm/uncentred_columns.cuh"
#include "src/ops/norm/power_norm.h"

namespace keel::cuda {
namespace {

using In = PowerNormInput;
using Out = PowerNormOutput;
using BackIn = PowerNormBackwardInput;
using BackOut = PowerNormGradient;

struct Rules {
  double eps, alpha_f, alpha_b;
  std::int64_t warmup;
  bool is_release, pad_stats;

  explicit Rules(const PowerNormAttrs& a)
      : eps(a.eps),
        alpha_f(a.alpha_f),
        alpha_b(a.alpha_b),
        warmup(a.warmup),
        is_release(a.is_release()),
        pad_stats(a.pad_stats) {}

  // psi2' after training forward t.
  __device__ double next_psi2(double psi2, double batch, std::int64_t t) const {
    if (t < warmup) {
      psi2 = psi2 * double(t - 1) / double(t) + batch / double(t);
      if (!is_release) return psi2;
    }
    return alpha_f * psi2 + (1 - alpha_f) * batch;
  }
};

struct Statistics {
  Rules rules;
  Global<const float> psi2;
  Global<const std::int32_t> step;
  Global<float> rstd, rdx, gamma, next_psi2;
  Global<std::int32_t> next_step;

  __device__ void prefetch(std::int64_t c) const { psi2.prefetch(c); }
  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    const double running = psi2[c];
    if (c == 0 && next_step) next_step[0] = step[0] + (sums.count > 0 ? 1 : 0);
    if (sums.count == 0) {
      write(c, running, running);
      gamma[c] = 0;
      next_psi2[c] = float(running);
      return;
    }
    const std::int64_t t = step ? step[0] + std::int64_t{1} : 1;
    const double batch = sums.squares / sums.count;
    const double divisor = t <= rules.warmup ? batch : running;
    const double squares = rules.pad_stats ? sums.all_squares : sums.squares;
    const double count = rules.pad_stats ? sums.all : sums.count;
    write(c, divisor, rules.is_release ? batch : divisor);
    gamma[c] = float(squares / count / (divisor + rules.eps));
    next_psi2[c] = float(rules.next_psi2(running, batch, t));
  }
  __device__ void operator()(std::int64_t c) const { write(c, psi2[c], psi2[c]); }

 private:
  __device__ void write(std::int64_t c, double divisor, double dx_divisor) const {
    rstd[c] = float(1 / sqrt(divisor + rules.eps));
    rdx[c] = float(1 / sqrt(dx_divisor + rules.eps));
  }
};

// The watched quantities of the recursion of nu: the largest of two vectors.
struct Watch {
  double rate;  // 1 - alpha_b
  Global<const float> gamma, nu;
  Global<float> contraction, nu_max;
};

__global__ void watch(Watch a, std::int64_t channels) {
  float largest_gamma = -INFINITY, largest_nu = -INFINITY;
  for (std::int64_t c = threadIdx.x; c < channels; c += kColumnBlock) {
    largest_gamma = Largest()(largest_gamma, a.gamma[c]);
    largest_nu = Largest()(largest_nu, fabsf(a.nu[c]));
  }
  largest_gamma = over_block<kColumnBlock>(largest_gamma, Largest());
  largest_nu = over_block<kColumnBlock>(largest_nu, Largest());
  if (threadIdx.x > 0) return;
  a.contraction[0] = float(a.rate * largest_gamma);
  a.nu_max[0] = largest_nu;
}

template <class Scales>
void run_forward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs,
                 const Scales& scales) {
  const Statistics statistics{Rules(attrs),
                              input(b.inputs[In::kPsi2]),
                              global<const std::int32_t>(b.inputs[In::kStep]),
                              output(b.outputs[Out::kRstd]),
                              output(b.outputs[Out::kRdx]),
                              output(b.outputs[Out::kGamma]),
                              output(b.outputs[Out::kNextPsi2]),
                              global<std::int32_t>(b.outputs[Out::kNextStep])};
  run_uncentred_statistics<In>(b, sizes, attrs.training, statistics, scales);
  if (attrs.training) {
    launch(watch, {1, kColumnBlock},
           Watch{1 - attrs.alpha_b, statistics.gamma, input(b.inputs[In::kNu]),
                 output(b.outputs[Out::kContraction]), output(b.outputs[Out::kNuMax])},
           sizes.channels);
  }
  write_uncentred<In, Out>(b, sizes, {}, scales);
}

// Writes dgain, dbias, nu' and what dx needs of a channel. That is the slope, which is nu, or, with
// a scaling in front, the two factors in dz = of_dy * dy - of_z * z.
struct Gradients {
  Rules rules;
  Global<const float> gain, gamma, nu;
  Global<float> dgain, dbias, next_nu;
  Global<double> slope;
  Global<const float> rstd, rdx;
  Global<float> of_dy, of_z;

  __device__ void prefetch(std::int64_t c) const {
    gain.prefetch(c);
    gamma.prefetch(c);
    nu.prefetch(c);
    rstd.prefetch(c);
    rdx.prefetch(c);
  }
  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    if (dgain) dgain[c] = float(sums.dy_xhat);
    if (dbias) dbias[c] = float(sums.dy);
    if (of_dy) {
      of_dy[c] = rdx[c] * gain.get(c, 1);
      of_z[c] = next_nu ? float(double(rdx[c]) * nu[c] * rstd[c]) : 0;
    }
    if (!next_nu) return;
    if (slope) slope[c] = nu[c];
    const double count = rules.pad_stats && sums.count > 0 ? sums.all : sums.count;
    const double products = rules.pad_stats ? sums.all_dy_xhat : sums.dy_xhat;
    const double rate = 1 - rules.alpha_b;
    const double lambda = count > 0 ? products / count * gain.get(c, 1) : 0;
    next_nu[c] = float(count > 0 ? nu[c] * (1 - rate * gamma[c]) + rate * lambda : nu[c]);
  }
};

Gradients gradients_of(const Binding& b, const PowerNormAttrs& attrs) {
  return {Rules(attrs),
          input(b.inputs[BackIn::kGain]),
          input(b.inputs[BackIn::kGamma]),
          input(b.inputs[BackIn::kNu]),
          output(b.outputs[BackOut::kDgain]),
          output(b.outputs[BackOut::kDbias]),
          attrs.training ? output(b.outputs[BackOut::kNextNu]) : Global<float>(),
          {},
          input(b.inputs[BackIn::kRstd]),
          input(b.inputs[BackIn::kRdx]),
          {},
          {}};
}
UncentredBackward backward_of(const Binding& b, const PowerNormAttrs& attrs) {
  return uncentred_tensors<BackIn, BackOut>(b, attrs.training, BackIn::kRdx);
}

void run_backward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  Gradients gradients = gradients_of(b, attrs);
  gradients.slope = uncentred_scratch(b, sizes, true).vector(0);
  run_uncentred_backward(b, sizes, backward_of(b, attrs), gradients);
}

// With a scaling in front, z = x * row_rstd is never stored: a kernel that reads x computes it
// again.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    scales_of_rows(Data x, Global<float> row_rstd, RowSizes sizes, QuadraticMean scale_of) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x}, sizes);
  const float scale = scale_of(row_squares(row, Mean{}), sizes.width);
  if (row.is_first()) row_rstd[row.index()] = scale;
}

struct ScaledGradient {
  Data x, dy;
  Global<const float> row_rstd, of_dy, of_z;
  KeptRows kept;
  Result dx;
  std::int64_t groups;
};

// dx = s * (dz - z * mean(dz * z)) with z = x * s, and 0 in the rows left out.
template <class R>
__global__ void __launch_bounds__(R::kBlock) scaled_dx(ScaledGradient a, RowSizes sizes) {
  if (R::is_idle(sizes.rows)) return;
  const R row({a.x, a.dy}, sizes);
  const Divided place(row.index(), a.groups);
  const float s = a.row_rstd[row.index()];
  const bool is_kept = a.kept(place.quotient);
  const AlongRow of_dy{a.of_dy, 0, place.rest * sizes.width};
  const AlongRow of_z{a.of_z, 0, place.rest * sizes.width};
  const auto dz = [=](float x, float dy, float of_dy, float of_z) {
    return of_dy * dy - of_z * (x * s);
  };
  const auto product = [=](std::int64_t, float x, float dy, float of_dy, float of_z) {
    return dz(x, dy, of_dy, of_z) * (x * s);
  };
  const float slope = row.sum(product, of_dy, of_z) / float(sizes.width);
  const auto gradient = [=](std::int64_t, float x, float dy, float of_dy, float of_z) {
    return is_kept ? s * (dz(x, dy, of_dy, of_z) - x * s * slope) : 0;
  };
  row.store(a.dx, gradient, of_dy, of_z);
}

// A group of a token is a row.
struct Groups {
  ColumnSizes columns;
  RowSizes rows;
  std::int64_t count;  // of a token

  Groups(const Shape& x, const PowerNormAttrs& attrs)
      : columns(column_sizes(x)), rows(scaled_groups(x, attrs.groups)), count(attrs.groups) {}
};

void run_scaled_forward(const Binding& b, const Groups& groups, const PowerNormAttrs& attrs) {
  const auto row_rstd = output(b.outputs[Out::kRowRstd]);
  with_row<1>(groups.rows.width, [&]<class R>(std::type_identity<R> row) {
    launch(scales_of_rows<R>, grid_of_rows(row, groups.rows.rows), Data(b.inputs[In::kX]), row_rstd,
           groups.rows, QuadraticMean{attrs.scaling_eps});
  });
  run_forward(b, groups.columns, attrs, RowScales{row_rstd, groups.count, groups.rows.width});
}

void run_scaled_backward(const Binding& b, const Groups& groups, const PowerNormAttrs& attrs) {
  const ColumnScratch scratch = uncentred_scratch(b, groups.columns, true);
  Gradients gradients = gradients_of(b, attrs);
  gradients.of_dy = scratch.floats(0), gradients.of_z = scratch.floats(1);
  const UncentredBackward t = backward_of(b, attrs);
  const auto row_rstd = input(b.inputs[BackIn::kRowRstd]);
  uncentred_sums(b, groups.columns, t, gradients,
                 RowScales{row_rstd, groups.count, groups.rows.width});
  with_row<2>(groups.rows.width, [&]<class R>(std::type_identity<R> row) {
    launch(scaled_dx<R>, grid_of_rows(row, groups.rows.rows),
           ScaledGradient{t.x, t.dy, row_rstd, gradients.of_dy, gradients.of_z, t.kept, t.dx,
                          groups.count},
           groups.rows);
  });
}

}  // namespace

Prepared prepare_power_norm(const NodeContext& context) {
  const auto attrs = context.attrs<PowerNormAttrs>();
  const Shape x = context.input(In::kX).shape;
  const ColumnSizes sizes = column_sizes(x);
  const std::int64_t workspace = uncentred_workspace(sizes, false);
  if (!attrs.is_scaled()) {
    return kernel_of([=](const Binding& b) { run_forward(b, sizes, attrs, Unscaled()); },
                     workspace);
  }
  return kernel_of(
      [=, groups = Groups(x, attrs)](const Binding& b) { run_scaled_forward(b, groups, attrs); },
      workspace);
}

Prepared prepare_power_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PowerNormBackwardAttrs>();
  const Shape x = context.input(BackIn::kX).shape;
  const ColumnSizes sizes = column_sizes(x);
  if (!attrs.is_scaled()) {
    return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs); },
                     uncentred_workspace(sizes, true));
  }
  return kernel_of(
      [=, groups = Groups(x, attrs)](const Binding& b) { run_scaled_backward(b, groups, attrs); },
      ColumnScratch::bytes(sizes, kUncentredGradientSums, 2));
}

}  // namespace keel::cuda
