// SeeDNorm. The backward first finds what an element must know of its row, then the sums of
// columns, then dx, which may lie over dy.
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/seed_norm.h"

namespace keel::cuda {
namespace {

using In = SeedNormInput;
using Out = SeedNormOutput;
using BackIn = SeedNormBackwardInput;
using BackOut = SeedNormGradient;

struct Parameters {
  AlongRow gain, a, b;
};
// Forward and backward have them in the same places.
Parameters parameters(const Binding& b) {
  return {{input(b.inputs[In::kGain]), 1}, {input(b.inputs[In::kA])}, {input(b.inputs[In::kB])}};
}

// y = x * rstd * (tanh(score) * a + gain); rstd and the score, the sum of x * b, are saved.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    forward(Data x, Parameters of, Result y, Global<float> rstd, Global<float> score,
            RowSizes sizes, QuadraticMean scale_of) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x}, sizes);
  const float scale = scale_of(row_squares(row, Mean{}), sizes.width);
  const float s =
      float(row.sum([](std::int64_t, float value, float b) { return double(value) * b; }, of.b));
  const float t = hyperbolic_tangent(s);
  row.store(
      y,
      [=](std::int64_t, float value, float gain, float a) {
        return value * scale * fmaf(t, a, gain);
      },
      of.gain, of.a);
  if (row.is_first()) rstd[row.index()] = scale, score[row.index()] = s;
}

// The terms of a row in the gradient of its elements: rstd, tanh(score), mean(g * xhat), dscore.
struct RowFactors {
  Global<const float> rstd;
  Global<float> tanh, slope, dscore;
};

template <class R>
__global__ void __launch_bounds__(R::kBlock)
    find_factors(Data x, Data dy, Parameters of, Global<const float> score, RowFactors to,
                 RowSizes sizes) {
  if (R::is_idle(sizes.rows)) return;
  const R row({x, dy}, sizes);
  const float rstd = to.rstd[row.index()];
  const WithSlope t = tangent_and_slope(score[row.index()]);
  const double products =
      row.sum([=](std::int64_t, float x, float dy, float gain,
                  float a) { return double(dy * fmaf(t.value, a, gain)) * (x * rstd); },
              of.gain, of.a);
  const double of_a = row.sum(
      [=](std::int64_t, float x, float dy, float a) { return double(dy * a) * (x * rstd); }, of.a);
  if (!row.is_first()) return;
  to.tanh[row.index()] = t.value;
  to.slope[row.index()] = float(products / double(sizes.width));
  to.dscore[row.index()] = float(t.slope * of_a);
}

// The terms that an element adds to dgain, da and db.
struct ParameterTerms : PlainSums {
  static constexpr int kTensors = 2, kSums = 3;
  Data tensors[kTensors];  // x, dy
  RowFactors rows;

  ParameterTerms(Data x, Data dy, const RowFactors& rows) : tensors{x, dy}, rows(rows) {}
  __device__ void operator()(const float (&of)[kTensors], const TileStep& step, const Channel&,
                             double (&sums)[kSums]) const {
    const double product = double(of[1]) * (of[0] * rows.rstd[step.row]);
    sums[0] += product;
    sums[1] += rows.tanh[step.row] * product;
    sums[2] += double(rows.dscore[step.row]) * of[0];
  }
};

// dx = rstd * (g - xhat * slope) + dscore * b, g = dy * w.
struct Gradient {
  static constexpr int kTensors = 2;
  Data tensors[kTensors];  // x, dy
  Global<const float> gain, a, b;
  RowFactors rows;
  Result out;

  struct Channel {
    float gain, a, b;
  };
  __device__ Channel channel(std::int64_t c) const { return {gain.get(c, 1), a[c], b[c]}; }
  __device__ float operator()(const float (&of)[kTensors], const TileStep& step,
                              const Channel& c) const {
    const float rstd = rows.rstd[step.row], xhat = of[0] * rstd;
    const float g = of[1] * fmaf(rows.tanh[step.row], c.a, c.gain);
    return fmaf(rows.dscore[step.row], c.b, rstd * fmaf(-xhat, rows.slope[step.row], g));
  }
};

std::int64_t factor_bytes(const RowSizes& s) {
  return aligned_bytes(s.rows * std::int64_t{sizeof(float)});
}
ColumnSizes columns_of(const RowSizes& s) { return {s.rows, s.width, 1}; }

void run_backward(const Binding& b, const RowSizes& sizes) {
  const Data x(b.inputs[BackIn::kX]), dy(b.inputs[BackIn::kDy]);
  const Parameters of = parameters(b);
  const std::int64_t bytes = factor_bytes(sizes);
  const RowFactors rows{input(b.inputs[BackIn::kRstd]), workspace(b, sizes.rows),
                        workspace(b, sizes.rows, bytes), workspace(b, sizes.rows, 2 * bytes)};
  with_row<2>(sizes.width, [&]<class R>(std::type_identity<R> row) {
    launch(find_factors<R>, grid_of_rows(row, sizes.rows), x, dy, of,
           input(b.inputs[BackIn::kScore]), rows, sizes);
  });
  const ColumnSizes columns = columns_of(sizes);
  column_sums(columns, ParameterTerms(x, dy, rows),
              workspace<double>(b, partial_sums(columns, ParameterTerms::kSums), 3 * bytes),
              StoreSums<3>{{output(b.outputs[BackOut::kDgain]), output(b.outputs[BackOut::kDa]),
                            output(b.outputs[BackOut::kDb])}});
  map_columns(columns, Gradient{{x, dy},
                                input(b.inputs[BackIn::kGain]),
                                input(b.inputs[BackIn::kA]),
                                input(b.inputs[BackIn::kB]),
                                rows,
                                Result(b.outputs[BackOut::kDx])});
}

}  // namespace

Prepared prepare_seed_norm(const NodeContext& context) {
  const auto attrs = context.attrs<SeedNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) {
    with_row<1>(sizes.width, [&]<class R>(std::type_identity<R> row) {
      launch(forward<R>, grid_of_rows(row, sizes.rows), Data(b.inputs[In::kX]), parameters(b),
             Result(b.outputs[Out::kY]), output(b.outputs[Out::kRstd]),
             output(b.outputs[Out::kScore]), sizes, QuadraticMean{attrs.eps});
    });
  });
}

Prepared prepare_seed_norm_backward(const NodeContext& context) {
  const RowSizes sizes =
      row_sizes(context.input(BackIn::kX).shape, context.attrs<SeedNormAttrs>().axes);
  const std::int64_t sums = partial_sums(columns_of(sizes), ParameterTerms::kSums);
  return kernel_of([=](const Binding& b) { run_backward(b, sizes); },
                   3 * factor_bytes(sizes) + sums * std::int64_t{sizeof(double)});
}

}  // namespace keel::cuda
