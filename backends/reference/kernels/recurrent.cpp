// The element-wise part of LSTM and GRU cells.
#include "src/ops/recurrent.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

double squashed(double x) { return 1 / (1 + std::exp(-x)); }

double* numbers(const TensorRef& ref) { return ref.as<double>(); }

// Whether a row takes the step.
bool steps_in(const std::uint8_t* mask, std::int64_t row) {
  return mask == nullptr || mask[row] != 0;
}

void lstm_cell(const Binding& b, const CellSizes& s) {
  using In = LstmCellInput;
  using Out = LstmCellOutput;
  const double *u = numbers(b.inputs[In::kU]), *w = numbers(b.inputs[In::kW]);
  const double* before = numbers(b.inputs[In::kBefore]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double *c = numbers(b.outputs[Out::kC]), *o = numbers(b.outputs[Out::kO]);
  double* fig = numbers(b.outputs[Out::kFig]);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    for (std::int64_t i = 0; i < s.width; ++i) {
      const auto p = [&](int gate) {
        const std::int64_t at = (row * 4 + gate) * s.width + i;
        return u[at] + w[at];
      };
      const std::int64_t at = row * s.width + i, saved = row * 3 * s.width + i;
      const double f = squashed(p(0)), in = squashed(p(1)), g = std::tanh(p(3));
      c[at] = steps_in(mask, row) ? f * before[at] + in * g : before[at];
      o[at] = squashed(p(2));
      fig[saved] = f, fig[saved + s.width] = in, fig[saved + 2 * s.width] = g;
    }
  }
}

void lstm_cell_backward(const Binding& b, const CellSizes& s) {
  using In = LstmCellBackwardInput;
  using Out = LstmCellBackwardOutput;
  const double *fig = numbers(b.inputs[In::kFig]), *o = numbers(b.inputs[In::kO]);
  const double* before = numbers(b.inputs[In::kBefore]);
  const double *dc = numbers(b.inputs[In::kDc]), *d_o = numbers(b.inputs[In::kDo]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double *du = numbers(b.outputs[Out::kDu]), *dbefore = numbers(b.outputs[Out::kDbefore]);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const double m = steps_in(mask, row);
    for (std::int64_t j = 0; j < s.width; ++j) {
      const std::int64_t at = row * s.width + j, saved = row * 3 * s.width + j;
      const double f = fig[saved], i = fig[saved + s.width], g = fig[saved + 2 * s.width];
      const double dc_all = dc ? dc[at] : 0, dc_here = m * dc_all, do_here = d_o ? m * d_o[at] : 0;
      double* dp = du + row * 4 * s.width + j;
      dp[0] = dc_here * before[at] * f * (1 - f);
      dp[s.width] = dc_here * g * i * (1 - i);
      dp[2 * s.width] = do_here * o[at] * (1 - o[at]);
      dp[3 * s.width] = dc_here * i * (1 - g * g);
      dbefore[at] = dc_here * f + (1 - m) * dc_all;
    }
  }
}

void lstm_output(const Binding& b, const CellSizes& s) {
  using In = LstmOutputInput;
  const double *o = numbers(b.inputs[In::kO]), *n = numbers(b.inputs[In::kN]);
  const double* before = numbers(b.inputs[In::kBefore]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double* h = numbers(b.outputs[LstmOutputOutput::kH]);
  double* t = numbers(b.outputs[LstmOutputOutput::kTanh]);
  for (std::int64_t at = 0; at < s.elements(); ++at) {
    t[at] = std::tanh(n[at]);
    h[at] = steps_in(mask, at / s.width) ? o[at] * t[at] : before[at];
  }
}

void lstm_output_backward(const Binding& b, const CellSizes& s) {
  using In = LstmOutputBackwardInput;
  using Out = LstmOutputBackwardOutput;
  const double *o = numbers(b.inputs[In::kO]), *t = numbers(b.inputs[In::kTanh]);
  const double* dh = numbers(b.inputs[In::kDh]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double *d_o = numbers(b.outputs[Out::kDo]), *dn = numbers(b.outputs[Out::kDn]);
  double* dbefore = numbers(b.outputs[Out::kDbefore]);
  for (std::int64_t at = 0; at < s.elements(); ++at) {
    const double m = steps_in(mask, at / s.width), dh_all = dh[at];
    d_o[at] = m * dh_all * t[at];
    dn[at] = m * dh_all * o[at] * (1 - t[at] * t[at]);
    if (dbefore) dbefore[at] = (1 - m) * dh_all;
  }
}

void gru_cell(const Binding& b, const CellSizes& s) {
  using In = GruCellInput;
  const double *u = numbers(b.inputs[In::kU]), *w = numbers(b.inputs[In::kW]);
  const double *a = numbers(b.inputs[In::kA]), *q = numbers(b.inputs[In::kQ]);
  const double* before = numbers(b.inputs[In::kBefore]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double *h = numbers(b.outputs[GruCellOutput::kH]), *zrk = numbers(b.outputs[GruCellOutput::kZrk]);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    for (std::int64_t i = 0; i < s.width; ++i) {
      const std::int64_t at = row * s.width + i, saved = row * 3 * s.width + i;
      const std::int64_t z_at = row * 2 * s.width + i, r_at = z_at + s.width;
      const double z = squashed(u[z_at] + w[z_at]), r = squashed(u[r_at] + w[r_at]);
      const double k = std::tanh(a[at] + r * q[at]);
      h[at] = steps_in(mask, row) ? (1 - z) * before[at] + z * k : before[at];
      zrk[saved] = z, zrk[saved + s.width] = r, zrk[saved + 2 * s.width] = k;
    }
  }
}

void gru_cell_backward(const Binding& b, const CellSizes& s) {
  using In = GruCellBackwardInput;
  using Out = GruCellBackwardOutput;
  const double *zrk = numbers(b.inputs[In::kZrk]), *q = numbers(b.inputs[In::kQ]);
  const double *before = numbers(b.inputs[In::kBefore]), *dh = numbers(b.inputs[In::kDh]);
  const std::uint8_t* mask = b.inputs[In::kMask].as<std::uint8_t>();
  double *du = numbers(b.outputs[Out::kDu]), *da = numbers(b.outputs[Out::kDa]);
  double *dq = numbers(b.outputs[Out::kDq]), *dbefore = numbers(b.outputs[Out::kDbefore]);
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const double m = steps_in(mask, row);
    for (std::int64_t i = 0; i < s.width; ++i) {
      const std::int64_t at = row * s.width + i, saved = row * 3 * s.width + i;
      const double z = zrk[saved], r = zrk[saved + s.width], k = zrk[saved + 2 * s.width];
      const double dh_all = dh[at], dh_here = m * dh_all;
      const double ds = dh_here * z * (1 - k * k), dz = dh_here * (k - before[at]);
      double* dp = du + row * 2 * s.width + i;
      dp[0] = dz * z * (1 - z);
      dp[s.width] = ds * q[at] * r * (1 - r);
      da[at] = ds;
      dq[at] = ds * r;
      dbefore[at] = dh_here * (1 - z) + (1 - m) * dh_all;
    }
  }
}

// Runs `cell` on the sizes that the state at place `state` has.
template <class Cell>
Prepared by_cell(const NodeContext& context, int state, Cell cell) {
  const CellSizes sizes = cell_sizes(context.input(state).shape);
  return kernel_of([=](const Binding& b) { cell(b, sizes); });
}

}  // namespace

Prepared prepare_lstm_cell(const NodeContext& context) {
  return by_cell(context, LstmCellInput::kBefore, lstm_cell);
}
Prepared prepare_lstm_cell_backward(const NodeContext& context) {
  return by_cell(context, LstmCellBackwardInput::kBefore, lstm_cell_backward);
}
Prepared prepare_lstm_output(const NodeContext& context) {
  return by_cell(context, LstmOutputInput::kO, lstm_output);
}
Prepared prepare_lstm_output_backward(const NodeContext& context) {
  return by_cell(context, LstmOutputBackwardInput::kO, lstm_output_backward);
}
Prepared prepare_gru_cell(const NodeContext& context) {
  return by_cell(context, GruCellInput::kBefore, gru_cell);
}
Prepared prepare_gru_cell_backward(const NodeContext& context) {
  return by_cell(context, GruCellBackwardInput::kBefore, gru_cell_backward);
}

}  // namespace keel::reference
