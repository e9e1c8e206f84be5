// Weight normalization divides the weights of every output unit by their length.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "backends/cuda/kernels/norm/row.cuh"
#include "src/ops/norm/weight_norm.h"

namespace keel::cuda {
namespace {

using In = WeightNormInput;
using Out = WeightNormOutput;
using BackIn = WeightNormBackwardInput;
using BackOut = WeightNormGradient;

struct SquareTerms : PlainSums {
  static constexpr int kTensors = 1, kSums = 1;
  Global<const float> tensors[kTensors];  // v
  __device__ void operator()(const float (&of)[kTensors], const Turn&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += double(of[0]) * of[0];
  }
};

struct StoreNorm {
  double eps;
  Global<float> rnorm;
  __device__ void operator()(std::int64_t c, const double (&sums)[1]) const {
    rnorm[c] = float(1 / sqrt(sums[0] + eps));
  }
};

// w = g * v * rnorm.
struct Apply {
  static constexpr int kTensors = 1;
  Global<const float> tensors[kTensors];  // v
  Global<const float> g, rnorm;
  Global<float> out;

  struct Channel {
    float g, rnorm;
  };
  __device__ Channel channel(std::int64_t c) const { return {g[c], rnorm[c]}; }
  __device__ float operator()(const float (&of)[kTensors], const Turn&, const Channel& c) const {
    return c.g * (of[0] * c.rnorm);
  }
};

struct ProductTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 1;
  Global<const float> tensors[kTensors];  // v, dw
  __device__ void operator()(const float (&of)[kTensors], const Turn&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += double(of[1]) * of[0];
  }
};

struct StoreGradient {
  Global<const float> rnorm;
  Global<float> dg;
  __device__ void operator()(std::int64_t c, const double (&sums)[1]) const {
    dg[c] = float(sums[0] * rnorm[c]);
  }
};

// dv = g * rnorm * (dw - v * rnorm * dg).
struct ApplyGradient {
  static constexpr int kTensors = 2;
  Global<const float> tensors[kTensors];  // v, dw
  Global<const float> g, rnorm, dg;
  Global<float> out;

  struct Channel {
    float g, rnorm, dg;
  };
  __device__ Channel channel(std::int64_t c) const { return {g[c], rnorm[c], dg[c]}; }
  __device__ float operator()(const float (&of)[kTensors], const Turn&, const Channel& c) const {
    return c.g * c.rnorm * (of[1] - of[0] * c.rnorm * c.dg);
  }
};

// Units whose weights are neighbours and fit in registers are rows, which are read once; others are
// columns or channels.
bool has_rows(const ColumnSizes& s) { return s.outer == 1 && s.inner <= kWidestInRegisters; }

template <class R>
__global__ void __launch_bounds__(R::kBlock)
    forward_rows(Global<const float> v, Global<const float> g, Global<float> w, Global<float> rnorm,
                 RowSizes sizes, double eps) {
  if (R::is_idle(sizes.rows)) return;
  const R row({v}, sizes);
  const double squares = row.sum([](std::int64_t, float v) { return double(v) * v; });
  const float scale = float(1 / sqrt(squares + eps)), length = g[row.index()];
  row.store(w, [=](std::int64_t, float v) { return length * (v * scale); });
  if (row.is_first()) rnorm[row.index()] = scale;
}

struct BackwardTensors {
  Global<const float> v, dw, g, rnorm;
  Global<float> dv, dg;
};
template <class R>
__global__ void __launch_bounds__(R::kBlock) backward_rows(BackwardTensors a, RowSizes sizes) {
  if (R::is_idle(sizes.rows)) return;
  const R row({a.v, a.dw}, sizes);
  const float rnorm = a.rnorm[row.index()], factor = a.g[row.index()] * rnorm;
  const double products = row.sum([](std::int64_t, float v, float dw) { return double(dw) * v; });
  const float dg = float(products * rnorm);
  row.store(a.dv, [=](std::int64_t, float v, float dw) { return factor * (dw - v * rnorm * dg); });
  if (row.is_first()) a.dg[row.index()] = dg;
}

void run_forward(const Binding& b, const ColumnSizes& sizes, double eps) {
  const auto v = input(b.inputs[In::kV]), g = input(b.inputs[In::kG]);
  const auto w = output(b.outputs[Out::kW]), rnorm = output(b.outputs[Out::kRnorm]);
  if (has_rows(sizes)) {
    const RowSizes rows{sizes.channels, sizes.inner};
    return with_row_threads(rows.width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
      using R = Row<kThreads, 16, 1>;
      launch(forward_rows<R>, grid_of_rows(std::type_identity<R>(), rows.rows), v, g, w, rnorm,
             rows, eps);
    });
  }
  const ColumnScratch scratch(b, sizes, 1);
  column_sums(sizes, SquareTerms{{}, {v}}, scratch.partial(), StoreNorm{eps, rnorm});
  map_columns(sizes, Apply{{v}, g, rnorm, w});
}

void run_backward(const Binding& b, const ColumnSizes& sizes) {
  const BackwardTensors t{input(b.inputs[BackIn::kV]),     input(b.inputs[BackIn::kDw]),
                          input(b.inputs[BackIn::kG]),     input(b.inputs[BackIn::kRnorm]),
                          output(b.outputs[BackOut::kDv]), output(b.outputs[BackOut::kDg])};
  if (has_rows(sizes)) {
    const RowSizes rows{sizes.channels, sizes.inner};
    return with_row_threads(rows.width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
      using R = Row<kThreads, 16, 2>;
      launch(backward_rows<R>, grid_of_rows(std::type_identity<R>(), rows.rows), t, rows);
    });
  }
  const ColumnScratch scratch(b, sizes, 1);
  column_sums(sizes, ProductTerms{{}, {t.v, t.dw}}, scratch.partial(),
              StoreGradient{t.rnorm, t.dg});
  map_columns(sizes, ApplyGradient{{t.v, t.dw}, t.g, t.rnorm, t.dg, t.dv});
}

}  // namespace

Prepared prepare_weight_norm(const NodeContext& context) {
  const auto attrs = context.attrs<WeightNormAttrs>();
  const ColumnSizes sizes = weight_sizes(context.input(In::kV).shape, attrs);
  return kernel_of([=](const Binding& b) { run_forward(b, sizes, attrs.eps); },
                   ColumnScratch::bytes(sizes, 1, 0));
}

Prepared prepare_weight_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes =
      weight_sizes(context.input(BackIn::kV).shape, context.attrs<WeightNormAttrs>());
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); },
                   ColumnScratch::bytes(sizes, 1, 0));
}

}  // namespace keel::cuda
