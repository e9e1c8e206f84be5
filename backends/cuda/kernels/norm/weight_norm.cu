// Weight normalization divides the weights of every output unit by their length.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
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
  __device__ void operator()(const float (&of)[kTensors], std::int64_t, std::int64_t,
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
  __device__ float operator()(const float (&of)[kTensors], std::int64_t, const Channel& c) const {
    return c.g * (of[0] * c.rnorm);
  }
};

struct ProductTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 1;
  Global<const float> tensors[kTensors];  // v, dw
  __device__ void operator()(const float (&of)[kTensors], std::int64_t, std::int64_t,
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
  __device__ float operator()(const float (&of)[kTensors], std::int64_t, const Channel& c) const {
    return c.g * c.rnorm * (of[1] - of[0] * c.rnorm * c.dg);
  }
};

void run_forward(const Binding& b, const ColumnSizes& sizes, double eps) {
  const ColumnScratch scratch(b, sizes, 1);
  const auto v = input(b.inputs[In::kV]);
  const auto rnorm = output(b.outputs[Out::kRnorm]);
  column_sums(sizes, SquareTerms{{}, {v}}, scratch.partial(), StoreNorm{eps, rnorm});
  map_columns(sizes, Apply{{v}, input(b.inputs[In::kG]), rnorm, output(b.outputs[Out::kW])});
}

void run_backward(const Binding& b, const ColumnSizes& sizes) {
  const ColumnScratch scratch(b, sizes, 1);
  const auto v = input(b.inputs[BackIn::kV]), g = input(b.inputs[BackIn::kG]),
             rnorm = input(b.inputs[BackIn::kRnorm]), dw = input(b.inputs[BackIn::kDw]);
  const auto dg = output(b.outputs[BackOut::kDg]);
  column_sums(sizes, ProductTerms{{}, {v, dw}}, scratch.partial(), StoreGradient{rnorm, dg});
  map_columns(sizes, ApplyGradient{{v, dw}, g, rnorm, dg, output(b.outputs[BackOut::kDv])});
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
