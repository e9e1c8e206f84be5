// Recurrent layers with norms: LSTM (Hochreiter, Schmidhuber 1997) and GRU (Cho et al. 2014), as Ba
// et al. 2016 normalize them, eq 36-38 and 46-48, and Cooijmans et al. 2016.
//
// Sequences are time-major, x (steps, rows, features), so that the values of one time step are
// contiguous. A mask u8 (steps, rows) is 0 for padding: there a row keeps its state, to the bit,
// and norms over the batch leave it out.
//
// The graph is unrolled. One product before the loop multiplies the inputs of all time steps by the
// input weight, and one product after it gives the sum of a weight's gradients of all steps
// (src/passes/merge_products.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/nn/layers.h"

namespace keel::nn {

// The norms of a cell, each absent or applied at a site of its own.
struct CellNorms {
  std::optional<Norm> input;      // of x W, all gates together
  std::optional<Norm> recurrent;  // of h U, all gates together
  std::optional<Norm> cell;       // of an LSTM's c, before the output's tanh
};
// One norm at all three sites; `none` gives none.
CellNorms cell_norms(const Norm& norm);
// The same for an LSTM, where a norm over the batch has no bias for x W and for h U: the bias of
// the LSTM serves both (Cooijmans et al. 2016).
CellNorms lstm_norms(const Norm& norm);

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

// The state of an LSTM after a time step: h and c, (rows, width) each.
struct LstmState {
  Value h, c;
};

// [f i o g] = norm(h' U) + norm(x W) + b;   f, i, o = sigmoid(.), g = tanh(.)
// c = f c' + i g;   h = o tanh(norm(c))
//
// W "<name>/input/weight" (in, 4 width)   U "<name>/recurrent/weight" (width, 4 width)
// b "<name>/bias" (4 width); norms "<name>/{input/norm,recurrent/norm,cell_norm}/...". The gates
// lie in the order f, i, o, g. The first state is zero, or "<name>/start/{h,c}" (width).
class Lstm {
 public:
  Lstm(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
       const CellOptions& options = {});

  // The state before the first step, of `rows` sequences.
  LstmState start(std::int64_t rows) const;
  // norm(x W) + b of every time step, (rows, 4 width) each: the argument of step().
  std::vector<Value> project(Value x, Value mask = {}) const;
  // norm(x W) + b of one time step: x (rows, in).
  Value project_step(Value x, const Site& site) const;
  LstmState step(Value projected, const LstmState& before, const Site& site = {}) const;

  struct Run {
    Value h;         // (steps, rows, width)
    LstmState last;  // after each row's last step that the mask includes
  };
  // Runs all time steps, beginning with the first state.
  Run operator()(Value x, Value mask = {}) const;

 private:
  Value biased(Value projected) const;

  Net* net_;
  std::string name_;
  std::int64_t width_;
  Linear input_, recurrent_;
  std::optional<NormSite> cell_norm_;
  Value bias_, first_h_, first_c_;  // the last two may be absent
  double start_noise_;
  bool projects_by_step_;
};

// [z r] = sigmoid(norm(h' U) + norm(x W));   a = norm(x Wx), q = norm(h' Ux)
// h = (1 - z) h' + z tanh(a + r q)
//
// W "<name>/gates/input/weight" (in, 2 width) with a bias, U "<name>/gates/recurrent/weight"
// (width, 2 width), Wx "<name>/candidate/input/weight" (in, width) with a bias, Ux
// "<name>/candidate/recurrent/weight" (width, width). A layer whose norm has a bias has no other
// one. The gates lie in the order z, r; z = 1 - u of codes that write h = u h' + (1 - u) h^.
class Gru {
 public:
  Gru(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
      const CellOptions& options = {});

  // The part of one time step that depends on its input alone.
  struct Projected {
    Value gates, candidate;  // (rows, 2 width), (rows, width)
  };
  // The state before the first step, of `rows` sequences.
  Value start(std::int64_t rows) const;
  std::vector<Projected> project(Value x, Value mask = {}) const;
  // For one time step: x (rows, in).
  Projected project_step(Value x, const Site& site) const;
  Value step(const Projected& projected, Value h, const Site& site = {}) const;

  struct Run {
    Value h;     // (steps, rows, width)
    Value last;  // (rows, width), after each row's last step that the mask includes
  };
  // Begins with `first` (rows, width) or, where that is absent, with the first state.
  Run operator()(Value x, Value mask = {}, Value first = {}) const;

 private:
  Net* net_;
  std::string name_;
  std::int64_t width_;
  Linear gates_input_, gates_recurrent_, candidate_input_, candidate_recurrent_;
  Value first_;  // may be absent
  bool projects_by_step_;
};

// Cuts x (steps, ...) into its time steps, (...) each, and puts them together again.
std::vector<Value> unstack(Net& net, Value x);
Value stack(Net& net, const std::vector<Value>& steps);
// The mask of time step t, u8 (rows), or an absent one where there is no mask.
Value mask_at(Net& net, Value mask, std::int64_t t);

}  // namespace keel::nn
