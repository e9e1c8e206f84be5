// The element-wise part of LSTM and GRU cells, a register of units at a time: every gate is read,
// and every result written, once.
#include "src/ops/recurrent.h"

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/recurrent.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// A row of a tensor (rows, parts * width), or null where the tensor is absent.
const float* row_of(const TensorRef& ref, std::int64_t row, std::int64_t columns) {
  return ref.data == nullptr ? nullptr : ref.as<float>() + row * columns;
}
float* out_row(const TensorRef& ref, std::int64_t row, std::int64_t columns) {
  return ref.data == nullptr ? nullptr : ref.as<float>() + row * columns;
}
// Whether a row takes the step.
bool has(const TensorRef& mask, std::int64_t row) {
  return mask.data == nullptr || mask.as<std::uint8_t>()[row] != 0;
}
HWY_INLINE Floats one_minus(Floats x) { return hn::Sub(splat(1.0f), x); }

void fill(float* x, std::int64_t n, float value) {
  if (x != nullptr) std::fill_n(x, n, value);
}
// Before and after may be one.
void keep(float* after, const float* before, std::int64_t n) {
  if (after != before) std::copy_n(before, n, after);
}

void lstm_cell(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = LstmCellInput;
  using Out = LstmCellOutput;
  const auto n = std::size_t(width);
  const float *u = row_of(b.inputs[In::kU], row, 4 * width),
              *w = row_of(b.inputs[In::kW], row, 4 * width);
  const float* before = row_of(b.inputs[In::kBefore], row, width);
  float *c = out_row(b.outputs[Out::kC], row, width), *o = out_row(b.outputs[Out::kO], row, width);
  float* fig = out_row(b.outputs[Out::kFig], row, 3 * width);
  const bool steps = has(b.inputs[In::kMask], row);
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const auto p = [&](std::size_t gate) KEEL_LOOP_BODY {
      return hn::Add(part.load(u + gate * n + i), part.load(w + gate * n + i));
    };
    const Floats f = sigmoid(p(0)), in = sigmoid(p(1)), g = tanh(p(3));
    const Floats old = part.load(before + i);
    part.store(sigmoid(p(2)), o + i);
    part.store(f, fig + i);
    part.store(in, fig + n + i);
    part.store(g, fig + 2 * n + i);
    part.store(steps ? hn::MulAdd(f, old, hn::Mul(in, g)) : old, c + i);
  });
}

void lstm_cell_backward(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = LstmCellBackwardInput;
  using Out = LstmCellBackwardOutput;
  const auto n = std::size_t(width);
  const float *fig = row_of(b.inputs[In::kFig], row, 3 * width),
              *o = row_of(b.inputs[In::kO], row, width);
  const float* before = row_of(b.inputs[In::kBefore], row, width);
  const float *dc = row_of(b.inputs[In::kDc], row, width),
              *d_o = row_of(b.inputs[In::kDo], row, width);
  float *du = out_row(b.outputs[Out::kDu], row, 4 * width),
        *dbefore = out_row(b.outputs[Out::kDbefore], row, width);
  if (!has(b.inputs[In::kMask], row)) {
    fill(du, 4 * width, 0);
    return dc == nullptr ? fill(dbefore, width, 0) : keep(dbefore, dc, width);
  }
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const Floats f = part.load(fig + i), in = part.load(fig + n + i),
                 g = part.load(fig + 2 * n + i), out = part.load(o + i);
    const Floats dc_here = dc == nullptr ? zero() : part.load(dc + i);
    const Floats do_here = d_o == nullptr ? zero() : part.load(d_o + i);
    const Floats df = hn::Mul(dc_here, part.load(before + i)), di = hn::Mul(dc_here, g);
    const Floats dg = hn::Mul(dc_here, in);
    part.store(hn::Mul(hn::Mul(df, f), one_minus(f)), du + i);
    part.store(hn::Mul(hn::Mul(di, in), one_minus(in)), du + n + i);
    part.store(hn::Mul(hn::Mul(do_here, out), one_minus(out)), du + 2 * n + i);
    part.store(hn::Mul(dg, hn::NegMulAdd(g, g, splat(1.0f))), du + 3 * n + i);
    part.store(hn::Mul(dc_here, f), dbefore + i);
  });
}

void lstm_output(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = LstmOutputInput;
  const float *o = row_of(b.inputs[In::kO], row, width), *n = row_of(b.inputs[In::kN], row, width);
  const float* before = row_of(b.inputs[In::kBefore], row, width);
  float* h = out_row(b.outputs[LstmOutputOutput::kH], row, width);
  float* t = out_row(b.outputs[LstmOutputOutput::kTanh], row, width);
  const bool steps = has(b.inputs[In::kMask], row);
  for_lanes(std::size_t(width), [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const Floats value = tanh(part.load(n + i));
    part.store(value, t + i);
    part.store(steps ? hn::Mul(part.load(o + i), value) : part.load(before + i), h + i);
  });
}

void lstm_output_backward(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = LstmOutputBackwardInput;
  using Out = LstmOutputBackwardOutput;
  const float *o = row_of(b.inputs[In::kO], row, width),
              *t = row_of(b.inputs[In::kTanh], row, width);
  const float* dh = row_of(b.inputs[In::kDh], row, width);
  float *d_o = out_row(b.outputs[Out::kDo], row, width),
        *dn = out_row(b.outputs[Out::kDn], row, width);
  float* dbefore = out_row(b.outputs[Out::kDbefore], row, width);
  if (!has(b.inputs[In::kMask], row)) {
    fill(d_o, width, 0);
    fill(dn, width, 0);
    return keep(dbefore, dh, width);
  }
  for_lanes(std::size_t(width), [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const Floats value = part.load(t + i), d = part.load(dh + i);
    part.store(hn::Mul(d, value), d_o + i);
    const Floats slope = hn::NegMulAdd(value, value, splat(1.0f));
    part.store(hn::Mul(hn::Mul(d, part.load(o + i)), slope), dn + i);
  });
  fill(dbefore, width, 0);
}

void gru_cell(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = GruCellInput;
  const auto n = std::size_t(width);
  const float *u = row_of(b.inputs[In::kU], row, 2 * width),
              *w = row_of(b.inputs[In::kW], row, 2 * width);
  const float *a = row_of(b.inputs[In::kA], row, width), *q = row_of(b.inputs[In::kQ], row, width);
  const float* before = row_of(b.inputs[In::kBefore], row, width);
  float* h = out_row(b.outputs[GruCellOutput::kH], row, width);
  float* zrk = out_row(b.outputs[GruCellOutput::kZrk], row, 3 * width);
  const bool steps = has(b.inputs[In::kMask], row);
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const Floats z = sigmoid(hn::Add(part.load(u + i), part.load(w + i)));
    const Floats r = sigmoid(hn::Add(part.load(u + n + i), part.load(w + n + i)));
    const Floats k = tanh(hn::MulAdd(r, part.load(q + i), part.load(a + i)));
    const Floats old = part.load(before + i);
    part.store(z, zrk + i);
    part.store(r, zrk + n + i);
    part.store(k, zrk + 2 * n + i);
    part.store(steps ? hn::MulAdd(z, k, hn::Mul(one_minus(z), old)) : old, h + i);
  });
}

void gru_cell_backward(const Binding& b, std::int64_t width, std::int64_t row) {
  using In = GruCellBackwardInput;
  using Out = GruCellBackwardOutput;
  const auto n = std::size_t(width);
  const float *zrk = row_of(b.inputs[In::kZrk], row, 3 * width),
              *q = row_of(b.inputs[In::kQ], row, width);
  const float *before = row_of(b.inputs[In::kBefore], row, width),
              *dh = row_of(b.inputs[In::kDh], row, width);
  float *du = out_row(b.outputs[Out::kDu], row, 2 * width),
        *da = out_row(b.outputs[Out::kDa], row, width);
  float *dq = out_row(b.outputs[Out::kDq], row, width),
        *dbefore = out_row(b.outputs[Out::kDbefore], row, width);
  if (!has(b.inputs[In::kMask], row)) {
    fill(du, 2 * width, 0);
    fill(da, width, 0);
    fill(dq, width, 0);
    return keep(dbefore, dh, width);
  }
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const Floats z = part.load(zrk + i), r = part.load(zrk + n + i), k = part.load(zrk + 2 * n + i),
                 d = part.load(dh + i);
    const Floats ds = hn::Mul(hn::Mul(d, z), hn::NegMulAdd(k, k, splat(1.0f)));
    const Floats dz = hn::Mul(d, hn::Sub(k, part.load(before + i)));
    const Floats dr = hn::Mul(ds, part.load(q + i));
    part.store(hn::Mul(hn::Mul(dz, z), one_minus(z)), du + i);
    part.store(hn::Mul(hn::Mul(dr, r), one_minus(r)), du + n + i);
    part.store(ds, da + i);
    part.store(hn::Mul(ds, r), dq + i);
    part.store(hn::Mul(d, one_minus(z)), dbefore + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(lstm_cell);
HWY_EXPORT(lstm_cell_backward);
HWY_EXPORT(lstm_output);
HWY_EXPORT(lstm_output_backward);
HWY_EXPORT(gru_cell);
HWY_EXPORT(gru_cell_backward);

namespace {

// Runs `cell` on every row of the state, which is at place `state`.
template <class Cell>
Prepared by_cell_rows(const NodeContext& context, int state, Cell cell) {
  const CellSizes sizes = cell_sizes(context.input(state).shape);
  // Four functions an element, so that a block is worth a thread at a quarter of the usual size.
  const std::int64_t units = std::max<std::int64_t>(1, 4 * sizes.width);
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / units);
  return kernel_of([=](const Binding& b) {
    parallel_range(sizes.rows, block, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) cell(b, sizes.width, row);
    });
  });
}

}  // namespace

Prepared prepare_lstm_cell(const NodeContext& context) {
  return by_cell_rows(context, LstmCellInput::kBefore, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(lstm_cell)(args...);
  });
}
Prepared prepare_lstm_cell_backward(const NodeContext& context) {
  return by_cell_rows(context, LstmCellBackwardInput::kBefore, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(lstm_cell_backward)(args...);
  });
}
Prepared prepare_lstm_output(const NodeContext& context) {
  return by_cell_rows(context, LstmOutputInput::kO, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(lstm_output)(args...);
  });
}
Prepared prepare_lstm_output_backward(const NodeContext& context) {
  return by_cell_rows(context, LstmOutputBackwardInput::kO, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(lstm_output_backward)(args...);
  });
}
Prepared prepare_gru_cell(const NodeContext& context) {
  return by_cell_rows(context, GruCellInput::kBefore, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(gru_cell)(args...);
  });
}
Prepared prepare_gru_cell_backward(const NodeContext& context) {
  return by_cell_rows(context, GruCellBackwardInput::kBefore, [](const auto&... args) {
    HWY_DYNAMIC_DISPATCH(gru_cell_backward)(args...);
  });
}

}  // namespace keel::onednn
#endif
