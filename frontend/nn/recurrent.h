// Recurrent layers with norms: the plain network (Elman 1990), as Ba et al. 2016 normalize it in
// eq 4; LSTM (Hochreiter, Schmidhuber 1997) and GRU (Cho et al. 2014), as in their eq 36-38 and
// 46-48 and in Cooijmans et al. 2016. Formulas stand for norms of products; with a norm of the sum,
// norm(h' U) + norm(x W) is norm(h' U + x W).
//
// Sequences are time-major, x (steps, rows, features), so that the values of one time step are
// contiguous. A mask u8 (steps, rows) is 0 for padding: there a row keeps its state, to the bit,
// and norms over the batch leave it out.
//
// The graph is unrolled. One product before the loop multiplies the inputs of all time steps by the
// input weight, and one product after it gives the sum of a weight's gradients of all steps
// (src/passes/merge_matmuls.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/nn/summed_input.h"

namespace keel::nn {

struct CellOptions {
  CellNorms norms = {};
  FanInit input_init = xavier();
  // For a weight (width, gates * width): each gate is drawn as a matrix of its own.
  FanInit recurrent_init = [](std::int64_t fan_in, std::int64_t fan_out) {
    return orthogonal(1, fan_out / fan_in);
  };
  double forget_bias = 0;     // an LSTM's initial bias of the forget gate
  bool learns_start = false;  // whether the state before the first step is a parameter
  // The deviation of normal noise that training adds to an LSTM's first h, so that a norm over the
  // batch does not divide by the spread of equal rows (Cooijmans et al. 2016).
  double start_noise = 0;
};

// The states of a cell whose only state is h.
struct StateRun {
  Value h;     // (steps, rows, width)
  Value last;  // (rows, width), after each row's last step that the mask includes
};

// h = tanh(norm(h' U) + norm(x W) + b)
//
// W "<name>/input/weight" (in, width)   U "<name>/recurrent/weight" (width, width)
// b and norms as those of a SummedInput: with a norm of the sum tanh(norm(h' U + x W)), where the
// norm's bias, or b if it has none, stands inside.
class Rnn {
 public:
  Rnn(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
      const CellOptions& options = {});

  // The state before the first step, of `rows` sequences.
  Value start(std::int64_t rows) const;
  // The part of the time steps that depends only on their inputs: the arguments of step().
  std::vector<Value> project(Value x, Value mask = {}) const;
  Value project_step(Value x, const LayerCall& call) const;
  Value step(Value projected, Value h, const LayerCall& call = {}) const;

  // Runs all time steps from `first` (rows, width) or, where that is absent, from the first state.
  StateRun operator()(Value x, Value mask = {}, Value first = {}) const;

 private:
  Net* net_;
  std::string name_;
  std::int64_t width_;
  SummedInput sum_;
  Value first_;  // may be absent
};

// The state of an LSTM after a time step: h and c, (rows, width) each.
struct LstmState {
  Value h, c;
};

// [f i o g] = norm(h' U) + norm(x W) + b;   f, i, o = sigmoid(.), g = tanh(.)
// c = f c' + i g;   h = o tanh(norm(c))
//
// W "<name>/input/weight" (in, 4 width)   U "<name>/recurrent/weight" (width, 4 width)
// b "<name>/bias" (4 width); norms "<name>/{input/norm,recurrent/norm,norm,cell_norm}/...". The
// gates lie in the order f, i, o, g. The first state is zero, or "<name>/start/{h,c}" (width).
class Lstm {
 public:
  Lstm(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
       const CellOptions& options = {});

  // The state before the first step, of `rows` sequences.
  LstmState start(std::int64_t rows) const;
  // The part of every time step that depends only on its input, norm(x W) + b or, with a norm of
  // the sum, x W, (rows, 4 width) each: the argument of step().
  std::vector<Value> project(Value x, Value mask = {}) const;
  // For one time step: x (rows, in).
  Value project_step(Value x, const LayerCall& call) const;
  LstmState step(Value projected, const LstmState& before, const LayerCall& call = {}) const;

  struct Run {
    Value h;         // (steps, rows, width)
    LstmState last;  // after each row's last step that the mask includes
  };
  // Runs all time steps, beginning with the first state.
  Run operator()(Value x, Value mask = {}) const;

 private:
  Net* net_;
  std::string name_;
  std::int64_t width_;
  SummedInput sum_;
  std::optional<NormLayer> cell_norm_;
  Value first_h_, first_c_;  // may be absent
  double start_noise_;
};

// [z r] = sigmoid(norm(h' U) + norm(x W));   a = norm(x Wx), q = norm(h' Ux)
// h = (1 - z) h' + z tanh(a + r q);   with a norm of the sum tanh(norm(x Wx + r (h' Ux)))
//
// W "<name>/gates/input/weight" (in, 2 width) with a bias, U "<name>/gates/recurrent/weight"
// (width, 2 width), Wx "<name>/candidate/input/weight" (in, width) with a bias, Ux
// "<name>/candidate/recurrent/weight" (width, width). A layer whose norm has a bias has no other
// one. The gates lie in the order z, r; z = 1 - u of codes that write h = u h' + (1 - u) h^.
class Gru {
 public:
  Gru(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
      const CellOptions& options = {});

  // The part of one time step that depends only on its input.
  struct Projected {
    Value gates, candidate;  // (rows, 2 width), (rows, width)
  };
  // The state before the first step, of `rows` sequences.
  Value start(std::int64_t rows) const;
  std::vector<Projected> project(Value x, Value mask = {}) const;
  // For one time step: x (rows, in).
  Projected project_step(Value x, const LayerCall& call) const;
  Value step(const Projected& projected, Value h, const LayerCall& call = {}) const;

  // Runs all time steps from `first` (rows, width) or, where that is absent, from the first state.
  StateRun operator()(Value x, Value mask = {}, Value first = {}) const;

 private:
  Net* net_;
  std::string name_;
  std::int64_t width_;
  SummedInput gates_, candidate_;
  Value first_;  // may be absent
};

}  // namespace keel::nn
