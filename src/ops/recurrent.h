// Element-wise parts of recurrent cells, with one forward and one backward node a time step: LSTM
// (Hochreiter, Schmidhuber 1997) and GRU (Cho et al. 2014). Products and norms are nodes before
// them, and an LSTM's norm of c lies between its two ops (Ba et al. 2016, eq 36-38 and 46-48).
//
//   lstm_cell    [f i o g] = act(u + w), act = sigmoid, for g tanh;   c = f c' + i g
//                u, w (rows, 4 width)   before = c' (rows, width)
//                -> c, o (rows, width), and [f i g] (rows, 3 width), which the backward reads
//   lstm_output  h = o tanh(n)
//                o, n (rows, width)   before = h' (rows, width), or absent without a mask
//                -> h, tanh(n) (rows, width)
//   gru_cell     [z r] = sigmoid(u + w);   k = tanh(a + r q);   h = (1 - z) h' + z k
//                u, w (rows, 2 width)   a, q, before = h' (rows, width)
//                -> h (rows, width), and [z r k] (rows, 3 width), which the backward reads
//
// mask u8 (rows) or absent: in rows where it is 0, c and h keep their previous values exactly, and
// all gradients except those of the previous state are 0.
// Backward, with m = mask or 1, from dc and do, dh, or dh (an absent gradient counts as 0):
//   lstm_output_backward  do = m dh tanh(n);   dn = m dh o (1 - tanh(n)^2);   dh' = (1 - m) dh
//   lstm_cell_backward    du = dw = m [dc c' f (1 - f), dc g i (1 - i), do o (1 - o),
//                                      dc i (1 - g^2)]
//                         dc' = m dc f + (1 - m) dc
//   gru_cell_backward     ds = m dh z (1 - k^2);   dr = ds q;   dz = m dh (k - h')
//                         du = dw = [dz z (1 - z), dr r (1 - r)];   da = ds;   dq = ds r
//                         dh' = m dh (1 - z) + (1 - m) dh
// errors: other shapes, mixed types. in place: c and h over the previous state; the gradient of the
// previous state over that of the state.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places.
struct LstmCellInput {
  enum Place : int { kU, kW, kBefore, kMask };
};
struct LstmCellOutput {
  enum Place : int { kC, kO, kFig };
};
struct LstmCellBackwardInput {
  enum Place : int { kFig, kO, kBefore, kDc, kDo, kMask };  // kDc or kDo may be absent
};
struct LstmCellBackwardOutput {
  enum Place : int { kDu, kDbefore };
};
struct LstmOutputInput {
  enum Place : int { kO, kN, kBefore, kMask };
};
struct LstmOutputOutput {
  enum Place : int { kH, kTanh };
};
struct LstmOutputBackwardInput {
  enum Place : int { kO, kTanh, kDh, kMask };
};
struct LstmOutputBackwardOutput {
  enum Place : int { kDo, kDn, kDbefore };  // kDbefore is absent without a mask
};
struct GruCellInput {
  enum Place : int { kU, kW, kA, kQ, kBefore, kMask };
};
struct GruCellOutput {
  enum Place : int { kH, kZrk };
};
struct GruCellBackwardInput {
  enum Place : int { kZrk, kQ, kBefore, kDh, kMask };
};
struct GruCellBackwardOutput {
  enum Place : int { kDu, kDa, kDq, kDbefore };
};

// Sizes of a cell, taken from the shape of its state.
struct CellSizes {
  std::int64_t rows, width;
  std::int64_t elements() const { return rows * width; }
};
inline CellSizes cell_sizes(const Shape& state) { return {state[0], state[1]}; }

extern const OpInfo kLstmCell, kLstmCellBackward, kLstmOutput, kLstmOutputBackward, kGruCell,
    kGruCellBackward;

namespace ops {

struct LstmCell {
  Value c, o;
};
LstmCell lstm_cell(Graph& g, Value u, Value w, Value before, Value mask = {});
// Returns h. Give both `before` and `mask`, or neither.
Value lstm_output(Graph& g, Value o, Value n, Value before = {}, Value mask = {});

struct GruCell {
  Value u, w, a, q, before, mask = {};
};
// Returns h.
Value gru_cell(Graph& g, const GruCell& cell);

}  // namespace ops
}  // namespace keel
