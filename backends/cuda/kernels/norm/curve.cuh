// The norms of elements, y = gain f(u) + bias with u = alpha x + shift. A Curve has value(u), which
// is f, and with_slope(u), f and its derivative.
#pragma once

#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/norm/columns.cuh"
#include "src/ops/norm/norm.h"

namespace keel::cuda {

// u = alpha x + shift.
struct CurveArgument {
  float alpha, shift;
  __device__ float operator()(float x) const { return fmaf(alpha, x, shift); }
};

// Its numbers in memory; the shift may be absent.
struct CurveNumbers {
  Global<const float> alpha, shift;
  __device__ CurveArgument load() const { return {alpha[0], shift.get(0, 0)}; }
};

template <class Curve>
struct CurveMap {
  static constexpr int kTensors = 1;
  Data tensors[kTensors];  // x
  Global<const float> gain, bias;
  CurveNumbers numbers;
  Result out;

  struct Channel {
    float gain, bias;
    CurveArgument u;
  };
  __device__ Channel channel(std::int64_t c) const {
    return {gain.get(c, 1), bias.get(c, 0), numbers.load()};
  }
  __device__ float operator()(const float (&of)[kTensors], const TileStep&,
                              const Channel& c) const {
    return fmaf(c.gain, Curve::value(c.u(of[0])), c.bias);
  }
};

// k = dy gain f'(u).
template <class Curve>
struct CurveGradient {
  static constexpr int kTensors = 2;
  Data tensors[kTensors];  // x, dy
  Global<const float> gain;
  CurveNumbers numbers;
  Result out;

  struct Channel {
    float gain;
    CurveArgument u;
  };
  __device__ Channel channel(std::int64_t c) const { return {gain.get(c, 1), numbers.load()}; }
  __device__ float operator()(const float (&of)[kTensors], const TileStep&,
                              const Channel& c) const {
    return c.u.alpha * (of[1] * c.gain * Curve::with_slope(c.u(of[0])).slope);
  }
};

// The sums of a column: of dy f(u), dy, k x and k.
template <class Curve>
struct CurveTerms {
  static constexpr bool kAnchored = false;
  static constexpr int kTensors = 2, kSums = 4;
  Data tensors[kTensors];  // x, dy
  Global<const float> gain;
  CurveNumbers numbers;

  struct Channel {
    float gain;
    CurveArgument u;
  };
  __device__ Channel channel(std::int64_t c) const { return {gain.get(c, 1), numbers.load()}; }
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel& c,
                             double (&sums)[kSums]) const {
    const WithSlope f = Curve::with_slope(c.u(of[0]));
    const float k = of[1] * c.gain * f.slope;
    sums[0] += double(of[1]) * f.value;
    sums[1] += of[1];
    sums[2] += double(k) * of[0];
    sums[3] += k;
  }
};

// The sums of k x and k of every column, to be added up over all columns.
struct CurveColumns : PlainSums {
  static constexpr int kTensors = 2, kSums = 2;
  Global<const float> tensors[kTensors];
  __device__ void operator()(const float (&of)[kTensors], const TileStep&, const Channel&,
                             double (&sums)[kSums]) const {
    for (int s = 0; s < kSums; ++s) sums[s] += of[s];
  }
};

// A gain, a bias, the shift and the gradients of all three may be absent.
struct CurveForward {
  Data x;
  Global<const float> gain, bias;
  CurveNumbers numbers;
  Result y;
};
struct CurveBackward {
  Data x, dy;
  Global<const float> gain;
  CurveNumbers numbers;
  Result dx;
  Global<float> dgain, dbias, dalpha, dshift;
};

// x (rows, width) as the sums see it, and the sums of its columns as they are added up.
inline ColumnSizes curve_columns(const RowSizes& s) { return {s.rows, s.width, 1}; }
inline ColumnSizes curve_row(const RowSizes& s) { return {s.width, 1, 1}; }

// The workspace: two vectors of columns, then the partial sums of either step.
inline std::int64_t curve_vector_bytes(const RowSizes& s) {
  return aligned_bytes(s.width * std::int64_t{sizeof(float)});
}
inline std::int64_t curve_partial_sums(const RowSizes& s) {
  return std::max(partial_sums(curve_columns(s), 4),
                  partial_sums(curve_row(s), CurveColumns::kSums));
}
inline std::int64_t curve_workspace(const RowSizes& s) {
  return 2 * curve_vector_bytes(s) + curve_partial_sums(s) * std::int64_t{sizeof(double)};
}

template <class Curve>
void run_curve(const CurveForward& t, const RowSizes& sizes) {
  map_columns(curve_columns(sizes), CurveMap<Curve>{{t.x}, t.gain, t.bias, t.numbers, t.y});
}

// The sums come first, since dx may lie over dy.
template <class Curve>
void run_curve_backward(const Binding& b, const CurveBackward& t, const RowSizes& sizes) {
  const auto of_alpha = workspace(b, sizes.width),
             of_shift = workspace(b, sizes.width, curve_vector_bytes(sizes));
  const auto partial =
      workspace<double>(b, curve_partial_sums(sizes), 2 * curve_vector_bytes(sizes));
  column_sums(curve_columns(sizes), CurveTerms<Curve>{{t.x, t.dy}, t.gain, t.numbers}, partial,
              StoreSums<4>{{t.dgain, t.dbias, of_alpha, of_shift}});
  column_sums(curve_row(sizes), CurveColumns{{}, {of_alpha, of_shift}}, partial,
              StoreSums<2>{{t.dalpha, t.dshift}});
  map_columns(curve_columns(sizes), CurveGradient<Curve>{{t.x, t.dy}, t.gain, t.numbers, t.dx});
}

// The norm's shift, or none where its inputs or gradients have no such place.
template <class Places>
TensorRef shift_of(const std::vector<TensorRef>& tensors) {
  if constexpr (requires { Places::kShift; }) {
    return tensors[Places::kShift];
  } else if constexpr (requires { Places::kDshift; }) {
    return tensors[Places::kDshift];
  } else {
    return {};
  }
}

template <class Curve, class Attrs, class In>
Prepared prepare_curve(const NodeContext& context) {
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<Attrs>().axes);
  return kernel_of([=](const Binding& b) {
    run_curve<Curve>({.x = Data(b.inputs[In::kX]),
                      .gain = input(b.inputs[In::kGain]),
                      .bias = input(b.inputs[In::kBias]),
                      .numbers = {input(b.inputs[In::kAlpha]), input(shift_of<In>(b.inputs))},
                      .y = Result(b.outputs[NormOutput::kY])},
                     sizes);
  });
}

template <class Curve, class Attrs, class In, class Out>
Prepared prepare_curve_backward(const NodeContext& context) {
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, context.attrs<Attrs>().axes);
  const auto run = [=](const Binding& b) {
    run_curve_backward<Curve>(
        b,
        {.x = Data(b.inputs[In::kX]),
         .dy = Data(b.inputs[In::kDy]),
         .gain = input(b.inputs[In::kGain]),
         .numbers = {input(b.inputs[In::kAlpha]), input(shift_of<In>(b.inputs))},
         .dx = Result(b.outputs[Out::kDx]),
         .dgain = output(b.outputs[Out::kDgain]),
         .dbias = output(b.outputs[Out::kDbias]),
         .dalpha = output(b.outputs[Out::kDalpha]),
         .dshift = output(shift_of<Out>(b.outputs))},
        sizes);
  };
  return kernel_of(run, curve_workspace(sizes));
}

}  // namespace keel::cuda
