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
  Global<float> rpsi, rdx, gamma, next_psi2;

  __device__ void operator()(std::int64_t c, SquareSums sums) const {
    const double running = psi2[c];
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
    rpsi[c] = float(1 / sqrt(divisor + rules.eps));
    rdx[c] = float(1 / sqrt(dx_divisor + rules.eps));
  }
};

// What is watched of the recursion of nu, and the step counter.
struct Watch {
  Rules rules;
  Global<const float> gamma, nu;
  Global<const std::int32_t> step;
  SquareSource from;
  std::int64_t rows, channels;
  Global<std::int32_t> next_step;
  Global<float> contraction, nu_max;
};

__global__ void watch(Watch a) {
  float largest_gamma = -INFINITY, largest_nu = -INFINITY;
  for (std::int64_t c = threadIdx.x; c < a.channels; c += kColumnBlock) {
    largest_gamma = Largest()(largest_gamma, a.gamma[c]);
    largest_nu = Largest()(largest_nu, fabsf(a.nu[c]));
  }
  bool any = a.from.given && a.from.given[SquareRow::kCount] > 0;
  for (std::int64_t row = threadIdx.x; row < a.rows && !a.from.given; row += kColumnBlock) {
    any = any || a.from.kept(row);
  }
  largest_gamma = over_block<kColumnBlock>(largest_gamma, Largest());
  largest_nu = over_block<kColumnBlock>(largest_nu, Largest());
  const bool has_rows = over_block<kColumnBlock>(any ? 1.0f : 0.0f, Largest()) > 0;
  if (threadIdx.x > 0) return;
  a.contraction[0] = float((1 - a.rules.alpha_b) * largest_gamma);
  a.nu_max[0] = largest_nu;
  if (a.next_step) a.next_step[0] = a.step[0] + (has_rows ? 1 : 0);
}

void run_forward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const KeptRows kept = kept_rows(b.inputs[In::kMask]);
  const auto step = global<const std::int32_t>(b.inputs[In::kStep]);
  const Statistics statistics{Rules(attrs),
                              input(b.inputs[In::kPsi2]),
                              step,
                              output(b.outputs[Out::kRpsi]),
                              output(b.outputs[Out::kRdx]),
                              output(b.outputs[Out::kGamma]),
                              output(b.outputs[Out::kNextPsi2])};
  if (!attrs.training) {
    each_channel(sizes, statistics);
  } else {
    const SquareSource from{kept, global<const double>(b.inputs[In::kSquares])};
    run_uncentred_statistics(b, sizes, from, statistics);
    launch(watch, {1, kColumnBlock},
           Watch{Rules(attrs), statistics.gamma, input(b.inputs[In::kNu]), step, from, sizes.outer,
                 sizes.channels, global<std::int32_t>(b.outputs[Out::kNextStep]),
                 output(b.outputs[Out::kContraction]), output(b.outputs[Out::kNuMax])});
  }
  map_columns(sizes, ScaleColumns{{Data(b.inputs[In::kX])},
                                  statistics.rpsi,
                                  {},
                                  input(b.inputs[In::kGain]),
                                  input(b.inputs[In::kBias]),
                                  kept,
                                  Result(b.outputs[Out::kY])});
}

// Writes dgain, dbias, nu' and the slope of dx, which is nu.
struct Gradients {
  Rules rules;
  Global<const float> gain, gamma, nu;
  Global<float> dgain, dbias, next_nu;
  Global<double> slope;

  __device__ void operator()(std::int64_t c, UncentredGradientSums sums) const {
    if (dgain) dgain[c] = float(sums.dy_xhat);
    if (dbias) dbias[c] = float(sums.dy);
    if (!next_nu) return;
    slope[c] = nu[c];
    const double count = rules.pad_stats && sums.count > 0 ? sums.all : sums.count;
    const double products = rules.pad_stats ? sums.all_dy_xhat : sums.dy_xhat;
    const double rate = 1 - rules.alpha_b;
    const double lambda = count > 0 ? products / count * gain.get(c, 1) : 0;
    next_nu[c] = float(count > 0 ? nu[c] * (1 - rate * gamma[c]) + rate * lambda : nu[c]);
  }
};

void run_backward(const Binding& b, const ColumnSizes& sizes, const PowerNormAttrs& attrs) {
  const auto gain = input(b.inputs[BackIn::kGain]), rpsi = input(b.inputs[BackIn::kRpsi]),
             rdx = input(b.inputs[BackIn::kRdx]);
  const Gradients gradients{Rules(attrs),
                            gain,
                            input(b.inputs[BackIn::kGamma]),
                            input(b.inputs[BackIn::kNu]),
                            output(b.outputs[BackOut::kDgain]),
                            output(b.outputs[BackOut::kDbias]),
                            attrs.training ? output(b.outputs[BackOut::kNextNu]) : Global<float>(),
                            uncentred_scratch(b, sizes, true).vector(0)};
  run_uncentred_backward(b, sizes,
                         {Data(b.inputs[BackIn::kX]),
                          Data(b.inputs[BackIn::kDy]),
                          rpsi,
                          rdx,
                          {},
                          gain,
                          kept_rows(b.inputs[BackIn::kMask]),
                          Result(b.outputs[BackOut::kDx]),
                          attrs.training,
                          global<const double>(b.inputs[BackIn::kSums])},
                         gradients);
}

// Writes z = x * rrms, the result of a scaling in front.
struct ScaleRows {
  static constexpr int kTensors = 1;
  Data tensors[kTensors];  // x
  Global<const float> rrms;
  std::int64_t groups, width;
  Result out;

  struct Channel {
    std::int64_t group;
  };
  __device__ Channel channel(std::int64_t c) const { return {c / width}; }
  __device__ float operator()(const float (&of)[kTensors], const Turn& turn,
                              const Channel& c) const {
    return of[0] * rrms[turn.row * groups + c.group];
  }
};

// Writes 0 to the rows left out, whatever x holds there.
struct ClearLeftOut {
  static constexpr int kTensors = 1;
  Data tensors[kTensors];  // dx
  KeptRows kept;
  Result out;

  struct Channel {};
  __device__ Channel channel(std::int64_t) const { return {}; }
  __device__ float operator()(const float (&of)[kTensors], const Turn& turn, const Channel&) const {
    return turn.is_kept ? of[0] : 0;
  }
};

// A node with a scaling, and what is after the scaling as a node with z, which is float32, for x.
struct Scaled {
  Binding node, on_z;
  ColumnSizes sizes;
  PowerNormAttrs attrs;
  RowSizes groups;

  Scaled(const Binding& b, void* z, const PowerNormAttrs& attrs)
      : node(b),
        on_z(b),
        sizes(column_sizes(b.inputs[NormInput::kX].type.shape)),
        attrs(attrs),
        groups(scaled_groups(b.inputs[NormInput::kX].type.shape, attrs.groups)) {
    on_z.inputs[NormInput::kX] = {z, {DType::kF32, b.inputs[NormInput::kX].type.shape}};
  }
};

void run_forward(const Scaled& s) {
  run_scaled_forward({Data(s.node.inputs[In::kX]),
                      {{}, 1},
                      {{}, 0},
                      Result(s.on_z.inputs[In::kX]),
                      output(s.node.outputs[Out::kRrms]),
                      s.groups},
                     QuadraticMean{s.attrs.scaling_eps});
  run_forward(s.on_z, s.sizes, s.attrs);
}

void run_backward(const Scaled& s) {
  const Data x(s.node.inputs[BackIn::kX]);
  const auto rrms = input(s.node.inputs[BackIn::kRrms]);
  const TensorRef &z = s.on_z.inputs[BackIn::kX], &dx = s.node.outputs[BackOut::kDx],
                  &mask = s.node.inputs[BackIn::kMask];
  map_columns(s.sizes, ScaleRows{{x}, rrms, s.attrs.groups, s.groups.width, Result(z)});
  run_backward(s.on_z, s.sizes, s.attrs);
  run_scaled_backward({x, Data(z), {{}, 1}, rrms, Result(dx), s.groups});
  if (mask) map_columns(s.sizes, ClearLeftOut{{Data(dx)}, kept_rows(mask), Result(dx)});
}

std::int64_t bytes_of_z(const NodeContext& context) {
  return context.input(NormInput::kX).shape.elements() * std::int64_t{sizeof(float)};
}

}  // namespace

Prepared prepare_power_norm(const NodeContext& context) {
  const auto attrs = context.attrs<PowerNormAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const std::int64_t workspace = uncentred_workspace(sizes, false);
  if (!attrs.is_scaled()) {
    return kernel_of([=](const Binding& b) { run_forward(b, sizes, attrs); }, workspace);
  }
  // z takes the place of y until that is written, unless y is bf16.
  const bool is_narrow = context.node.is_narrowed;
  const auto bind = [=](const Binding& b) -> Kernel {
    void* z =
        is_narrow ? static_cast<std::byte*>(b.workspace) + workspace : b.outputs[Out::kY].data;
    return [scaled = Scaled(b, z, attrs)] { run_forward(scaled); };
  };
  return {bind, workspace + (is_narrow ? bytes_of_z(context) : 0)};
}

Prepared prepare_power_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PowerNormBackwardAttrs>();
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  const std::int64_t workspace = uncentred_workspace(sizes, true);
  if (!attrs.is_scaled()) {
    return kernel_of([=](const Binding& b) { run_backward(b, sizes, attrs); }, workspace);
  }
  const auto bind = [=](const Binding& b) -> Kernel {
    void* z = static_cast<std::byte*>(b.workspace) + workspace;
    Scaled scaled(b, z, attrs);
    // dz takes the place of z, element by element.
    scaled.on_z.outputs[BackOut::kDx] = scaled.on_z.inputs[BackIn::kX];
    return [scaled] { run_backward(scaled); };
  };
  return {bind, workspace + bytes_of_z(context)};
}

}  // namespace keel::cuda
