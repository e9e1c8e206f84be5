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
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += double(of[0]) * of[0];
  }
};

struct StoreNorm {
  double eps;
  Global<float> rstd;
  __device__ void operator()(std::int64_t c, const double (&sums)[1]) const {
    rstd[c] = float(1 / sqrt(sums[0] + eps));
  }
};

// w = g * v * rstd.
struct Apply {
  static constexpr int kTensors = 1;
  Global<const float> tensors[kTensors];  // v
  Global<const float> g, rstd;
  Global<float> out;

  struct Channel {
    float g, rstd;
  };
  __device__ Channel channel(std::int64_t c) const { return {g[c], rstd[c]}; }
  __device__ float operator()(const float (&of)[kTensors], const TileStep&,
                              const Channel& c) const {
    return c.g * (of[0] * c.rstd);
  }
};

struct ProductTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 1;
  Global<const float> tensors[kTensors];  // v, dw
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel&,
                             double (&sums)[kSums]) const {
    sums[0] += double(of[1]) * of[0];
  }
};

struct StoreGradient {
  Global<const float> rstd;
  Global<float> dg;
  __device__ void operator()(std::int64_t c, const double (&sums)[1]) const {
    dg[c] = float(sums[0] * rstd[c]);
  }
};

// dv = g * rstd * (dw - v * rstd * dg).
struct ApplyGradient {
  static constexpr int kTensors = 2;
  Global<const float> tensors[kTensors];  // v, dw
  Global<const float> g, rstd, dg;
  Global<float> out;

  struct Channel {
    float g, rstd, dg;
  };
  __device__ Channel channel(std::int64_t c) const { return {g[c], rstd[c], dg[c]}; }
  __device__ float operator()(const float (&of)[kTensors], const TileStep&,
                              const Channel& c) const {
    return c.g * c.rstd * (of[1] - of[0] * c.rstd * c.dg);
  }
};

// Units whose weights are neighbours and fit in registers are rows, which are read once; others are
// columns or channels.
bool has_rows(const ColumnSizes& s) { return s.outer == 1 && s.inner <= kWidestInRegisters; }

template <class R>
__global__ void __launch_bounds__(R::kBlock)
    forward_rows(Global<const float> v, Global<const float> g, Global<float> w, Global<float> rstd,
                 RowSizes sizes, double eps) {
  if (R::is_idle(sizes.rows)) return;
  const R row({v}, sizes);
  const double squares = row.sum([](std::int64_t, float v) { return double(v) * v; });
  const float scale = float(1 / sqrt(squares + eps)), length = g[row.index()];
  row.store(w, [=](std::int64_t, float v) { return length * (v * scale); });
  if (row.is_first()) rstd[row.index()] = scale;
}

struct BackwardTensors {
  Global<const float> v, dw, g, rstd;
  Global<float> dv, dg;
};
template <class R>
__global__ void __launch_bounds__(R::kBlock) backward_rows(BackwardTensors a, RowSizes sizes) {
  if (R::is_idle(sizes.rows)) return;
  const R row({a.v, a.dw}, sizes);
  const float rstd = a.rstd[row.index()], factor = a.g[row.index()] * rstd;
  const double products = row.sum([](std::int64_t, float v, float dw) { return double(dw) * v; });
  const float dg = float(products * rstd);
  row.store(a.dv, [=](std::int64_t, float v, float dw) { return factor * (dw - v * rstd * dg); });
  if (row.is_first()) a.dg[row.index()] = dg;
}

void run_forward(const Binding& b, const ColumnSizes& sizes, double eps) {
  const auto v = input(b.inputs[In::kV]), g = input(b.inputs[In::kG]);
  const auto w = output(b.outputs[Out::kW]), rstd = output(b.outputs[Out::kRstd]);
  if (has_rows(sizes)) {
    const RowSizes rows{sizes.channels, sizes.inner};
    return with_row_threads(rows.width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
      using R = Row<kThreads, 16, 1>;
      launch(forward_rows<R>, grid_of_rows(std::type_identity<R>(), rows.rows), v, g, w, rstd, rows,
             eps);
    });
  }
  const ColumnScratch scratch(b, sizes, 1);
  column_sums(sizes, SquareTerms{{}, {v}}, scratch.partial(), StoreNorm{eps, rstd});
  map_columns(sizes, Apply{{v}, g, rstd, w});
}

void run_backward(const Binding& b, const ColumnSizes& sizes) {
  const BackwardTensors t{input(b.inputs[BackIn::kV]),     input(b.inputs[BackIn::kDw]),
                          input(b.inputs[BackIn::kG]),     input(b.inputs[BackIn::kRstd]),
                          output(b.outputs[BackOut::kDv]), output(b.outputs[BackOut::kDg])};
  if (has_rows(sizes)) {
    const RowSizes rows{sizes.channels, sizes.inner};
    return with_row_threads(rows.width, [&]<int kThreads>(std::integral_constant<int, kThreads>) {
      using R = Row<kThreads, 16, 2>;
      launch(backward_rows<R>, grid_of_rows(std::type_identity<R>(), rows.rows), t, rows);
    });
  }
  const ColumnScratch scratch(b, sizes, 1);
  column_sums(sizes, ProductTerms{{}, {t.v, t.dw}}, scratch.partial(), StoreGradient{t.rstd, t.dg});
  map_columns(sizes, ApplyGradient{{t.v, t.dw}, t.g, t.rstd, t.dg, t.dv});
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
