// The element-wise part of LSTM and GRU cells: a thread for each unit of each row.
#include "backends/cuda/device.h"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "src/ops/recurrent.h"

namespace keel::cuda {
namespace {

// Where a unit's numbers lie, and whether its row takes the step.
struct Unit {
  std::int64_t row, i, width;
  bool steps;

  __device__ Unit(std::int64_t width, const Global<const std::uint8_t>& mask, std::int64_t at)
      : row(at / width), i(at % width), width(width), steps(mask.get(row, 1) != 0) {}
  // The place of gate `gate` in a tensor (rows, gates * width).
  __device__ std::int64_t at(int gates, int gate) const { return (row * gates + gate) * width + i; }
};

struct LstmCellTensors {
  Global<const float> u, w, before;
  Global<const std::uint8_t> mask;
  Global<float> c, o, fig;
};

__global__ void lstm_cell_units(std::int64_t width, LstmCellTensors t) {
  for (std::int64_t e = grid_thread(); e < t.c.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const auto p = [&](int gate) { return t.u[unit.at(4, gate)] + t.w[unit.at(4, gate)]; };
    const float f = sigmoid(p(0)), in = sigmoid(p(1)), g = hyperbolic_tangent(p(3));
    const float old = t.before[e];
    t.o[e] = sigmoid(p(2));
    t.c[e] = unit.steps ? f * old + in * g : old;
    t.fig[unit.at(3, 0)] = f;
    t.fig[unit.at(3, 1)] = in;
    t.fig[unit.at(3, 2)] = g;
  }
}

struct LstmCellGradients {
  Global<const float> fig, o, before, dc, d_o;
  Global<const std::uint8_t> mask;
  Global<float> du, dbefore;
};

__global__ void lstm_cell_backward_units(std::int64_t width, LstmCellGradients t) {
  for (std::int64_t e = grid_thread(); e < t.dbefore.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const float f = t.fig[unit.at(3, 0)], in = t.fig[unit.at(3, 1)], g = t.fig[unit.at(3, 2)];
    const float out = t.o[e], dc = t.dc.get(e, 0);
    const float dc_here = unit.steps ? dc : 0, do_here = unit.steps ? t.d_o.get(e, 0) : 0;
    t.du[unit.at(4, 0)] = dc_here * t.before[e] * f * (1 - f);
    t.du[unit.at(4, 1)] = dc_here * g * in * (1 - in);
    t.du[unit.at(4, 2)] = do_here * out * (1 - out);
    t.du[unit.at(4, 3)] = dc_here * in * (1 - g * g);
    t.dbefore[e] = unit.steps ? dc * f : dc;
  }
}

struct LstmOutputTensors {
  Global<const float> o, n, before;
  Global<const std::uint8_t> mask;
  Global<float> h, tanh;
};

__global__ void lstm_output_units(std::int64_t width, LstmOutputTensors t) {
  for (std::int64_t e = grid_thread(); e < t.h.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const float value = hyperbolic_tangent(t.n[e]);
    t.tanh[e] = value;
    t.h[e] = unit.steps ? t.o[e] * value : t.before[e];
  }
}

struct LstmOutputGradients {
  Global<const float> o, tanh, dh;
  Global<const std::uint8_t> mask;
  Global<float> d_o, dn, dbefore;
};

__global__ void lstm_output_backward_units(std::int64_t width, LstmOutputGradients t) {
  for (std::int64_t e = grid_thread(); e < t.dn.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const float value = t.tanh[e], d = t.dh[e], d_here = unit.steps ? d : 0;
    t.d_o[e] = d_here * value;
    t.dn[e] = d_here * t.o[e] * (1 - value * value);
    if (t.dbefore) t.dbefore[e] = unit.steps ? 0 : d;
  }
}

struct GruCellTensors {
  Global<const float> u, w, a, q, before;
  Global<const std::uint8_t> mask;
  Global<float> h, zrk;
};

__global__ void gru_cell_units(std::int64_t width, GruCellTensors t) {
  for (std::int64_t e = grid_thread(); e < t.h.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const float z = sigmoid(t.u[unit.at(2, 0)] + t.w[unit.at(2, 0)]);
    const float r = sigmoid(t.u[unit.at(2, 1)] + t.w[unit.at(2, 1)]);
    const float k = hyperbolic_tangent(t.a[e] + r * t.q[e]), old = t.before[e];
    t.h[e] = unit.steps ? (1 - z) * old + z * k : old;
    t.zrk[unit.at(3, 0)] = z;
    t.zrk[unit.at(3, 1)] = r;
    t.zrk[unit.at(3, 2)] = k;
  }
}

struct GruCellGradients {
  Global<const float> zrk, q, before, dh;
  Global<const std::uint8_t> mask;
  Global<float> du, da, dq, dbefore;
};

__global__ void gru_cell_backward_units(std::int64_t width, GruCellGradients t) {
  for (std::int64_t e = grid_thread(); e < t.dbefore.size(); e += grid_threads()) {
    const Unit unit(width, t.mask, e);
    const float z = t.zrk[unit.at(3, 0)], r = t.zrk[unit.at(3, 1)], k = t.zrk[unit.at(3, 2)];
    const float d = t.dh[e], d_here = unit.steps ? d : 0;
    const float ds = d_here * z * (1 - k * k), dz = d_here * (k - t.before[e]);
    t.du[unit.at(2, 0)] = dz * z * (1 - z);
    t.du[unit.at(2, 1)] = ds * t.q[e] * r * (1 - r);
    t.da[e] = ds;
    t.dq[e] = ds * r;
    t.dbefore[e] = unit.steps ? d * (1 - z) : d;
  }
}

template <class Kernel, class Tensors>
void launch_units(Kernel kernel, const CellSizes& sizes, const Tensors& tensors) {
  if (sizes.elements() > 0) launch(kernel, one_thread_each(sizes.elements()), sizes.width, tensors);
}

void lstm_cell(const Binding& b, const CellSizes& sizes) {
  using In = LstmCellInput;
  using Out = LstmCellOutput;
  launch_units(lstm_cell_units, sizes,
               LstmCellTensors{
                   input(b.inputs[In::kU]), input(b.inputs[In::kW]), input(b.inputs[In::kBefore]),
                   global<const std::uint8_t>(b.inputs[In::kMask]), output(b.outputs[Out::kC]),
                   output(b.outputs[Out::kO]), output(b.outputs[Out::kFig])});
}

void lstm_cell_backward(const Binding& b, const CellSizes& sizes) {
  using In = LstmCellBackwardInput;
  using Out = LstmCellBackwardOutput;
  launch_units(
      lstm_cell_backward_units, sizes,
      LstmCellGradients{input(b.inputs[In::kFig]), input(b.inputs[In::kO]),
                        input(b.inputs[In::kBefore]), input(b.inputs[In::kDc]),
                        input(b.inputs[In::kDo]), global<const std::uint8_t>(b.inputs[In::kMask]),
                        output(b.outputs[Out::kDu]), output(b.outputs[Out::kDbefore])});
}

void lstm_output(const Binding& b, const CellSizes& sizes) {
  using In = LstmOutputInput;
  launch_units(lstm_output_units, sizes,
               LstmOutputTensors{input(b.inputs[In::kO]), input(b.inputs[In::kN]),
                                 input(b.inputs[In::kBefore]),
                                 global<const std::uint8_t>(b.inputs[In::kMask]),
                                 output(b.outputs[LstmOutputOutput::kH]),
                                 output(b.outputs[LstmOutputOutput::kTanh])});
}

void lstm_output_backward(const Binding& b, const CellSizes& sizes) {
  using In = LstmOutputBackwardInput;
  using Out = LstmOutputBackwardOutput;
  launch_units(lstm_output_backward_units, sizes,
               LstmOutputGradients{
                   input(b.inputs[In::kO]), input(b.inputs[In::kTanh]), input(b.inputs[In::kDh]),
                   global<const std::uint8_t>(b.inputs[In::kMask]), output(b.outputs[Out::kDo]),
                   output(b.outputs[Out::kDn]), output(b.outputs[Out::kDbefore])});
}

void gru_cell(const Binding& b, const CellSizes& sizes) {
  using In = GruCellInput;
  launch_units(
      gru_cell_units, sizes,
      GruCellTensors{input(b.inputs[In::kU]), input(b.inputs[In::kW]), input(b.inputs[In::kA]),
                     input(b.inputs[In::kQ]), input(b.inputs[In::kBefore]),
                     global<const std::uint8_t>(b.inputs[In::kMask]),
                     output(b.outputs[GruCellOutput::kH]), output(b.outputs[GruCellOutput::kZrk])});
}

void gru_cell_backward(const Binding& b, const CellSizes& sizes) {
  using In = GruCellBackwardInput;
  using Out = GruCellBackwardOutput;
  launch_units(gru_cell_backward_units, sizes,
               GruCellGradients{input(b.inputs[In::kZrk]), input(b.inputs[In::kQ]),
                                input(b.inputs[In::kBefore]), input(b.inputs[In::kDh]),
                                global<const std::uint8_t>(b.inputs[In::kMask]),
                                output(b.outputs[Out::kDu]), output(b.outputs[Out::kDa]),
                                output(b.outputs[Out::kDq]), output(b.outputs[Out::kDbefore])});
}

// Runs `cell` on the sizes that the state at place `state` has.
Prepared by_units(const NodeContext& context, int state,
                  void (*cell)(const Binding&, const CellSizes&)) {
  const CellSizes sizes = cell_sizes(context.input(state).shape);
  return kernel_of([=](const Binding& b) { cell(b, sizes); });
}

}  // namespace

Prepared prepare_lstm_cell(const NodeContext& context) {
  return by_units(context, LstmCellInput::kBefore, lstm_cell);
}
Prepared prepare_lstm_cell_backward(const NodeContext& context) {
  return by_units(context, LstmCellBackwardInput::kBefore, lstm_cell_backward);
}
Prepared prepare_lstm_output(const NodeContext& context) {
  return by_units(context, LstmOutputInput::kO, lstm_output);
}
Prepared prepare_lstm_output_backward(const NodeContext& context) {
  return by_units(context, LstmOutputBackwardInput::kO, lstm_output_backward);
}
Prepared prepare_gru_cell(const NodeContext& context) {
  return by_units(context, GruCellInput::kBefore, gru_cell);
}
Prepared prepare_gru_cell_backward(const NodeContext& context) {
  return by_units(context, GruCellBackwardInput::kBefore, gru_cell_backward);
}

}  // namespace keel::cuda
