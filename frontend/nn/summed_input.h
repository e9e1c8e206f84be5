// The summed input of a recurrent cell, h U + x W for its state h and its input x, with its norms.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/layers.h"

namespace keel::nn {

// The inputs of a cell that its norm is applied to.
enum class NormOf {
  kProducts,  // h U and x W, each by itself: Ba et al. 2016, eq 36-38 and 46-48
  kSum,       // h U + x W as one: Ba et al. 2016, eq 4
};
constexpr auto choice_words(NormOf) { return std::to_array<std::string_view>({"products", "sum"}); }
// The meaning of an option of a model that chooses one of them.
inline constexpr std::string_view kNormOfHelp =
    "position of the norm in a cell: at each of its products with input and state, or at the sum "
    "of both (Ba et al. 2016, eq. 4)";

// The norms of a cell, each absent or applied at a call of its own. That of the sum stands in place
// of the first two.
struct CellNorms {
  std::optional<Norm> input = {};      // of x W, all gates together
  std::optional<Norm> recurrent = {};  // of h U, all gates together
  std::optional<Norm> cell = {};       // of an LSTM's c, before the output's tanh
  std::optional<Norm> sum = {};        // of h U + x W, all gates together
};
// One norm at the cell's sites; `none` gives none.
CellNorms cell_norms(const Norm& norm, NormOf of = NormOf::kProducts);
// The same for an LSTM, where a norm over the batch has no bias for x W, h U and their sum: the
// bias of the LSTM serves all (Cooijmans et al. 2016).
CellNorms lstm_norms(const Norm& norm, NormOf of = NormOf::kProducts);

struct SummedInputOptions {
  CellNorms norms = {};  // all but that of the cell
  FanInit input_init = xavier();
  FanInit recurrent_init = xavier();
  // The bias b after the norms. Without it x W has a bias in front of its norm, or the sum one
  // after its norm, unless that norm has one itself.
  std::optional<Initializer> bias = {};
};

// a = norm(h U) + norm(x W) + b, or a = norm(h U + x W) + b.
//
// W "<name>/input/weight" (in, out)   U "<name>/recurrent/weight" (width, out)
// b "<name>/bias" (out), or "<name>/input/bias" in front of the norm of x W
// norms "<name>/{input/norm,recurrent/norm,norm}/..."
// A norm of weights takes the weights of both products for one where it is that of the sum. Throws
// Error{kUsage} for a norm of the sum beside one of the products.
class SummedInput {
 public:
  struct Sizes {
    std::int64_t in, width, out;
  };
  SummedInput(Net& net, const std::string& name, const Sizes& sizes,
              const SummedInputOptions& options);

  // The part of `a` that depends only on x: for all time steps of x (steps, rows, in), or for one,
  // x (rows, in).
  std::vector<Value> project(Value x, Value mask = {}) const;
  Value project_step(Value x, const LayerCall& call) const;

  // Terms (rows, out) with the sum `a`; w is absent where u is all of it.
  struct Terms {
    Value u, w;
  };
  // A gate (rows, out), where there is one, multiplies h U in front of the norm of the sum.
  Terms operator()(Value projected, Value h, const LayerCall& call, Value gate = {}) const;
  // Whether the sum is normalized as one.
  bool is_one() const { return sum_ != nullptr; }

 private:
  // The layer whose sum is normalized as one.
  struct Sum {
    Value input, recurrent;  // W and U
    Value gain = {};         // of a norm of weights
    NormLayer norm;
    std::optional<DataDependentInit> start = {};
  };
  static std::shared_ptr<Sum> make_sum(Net& net, const Sizes& sizes,
                                       const SummedInputOptions& options);
  Value normalized(Value sum, const LayerCall& call) const;
  Value biased(Value x) const;

  Net* net_;
  std::string name_;
  std::optional<Linear> input_, recurrent_;  // of products that are normalized each by itself
  std::shared_ptr<Sum> sum_;                 // else
  double gain_init_ = 1;
  Value bias_;  // may be absent
  bool projects_by_step_ = false;
};

// Cuts x (steps, ...) into its time steps, (...) each, and puts them together again.
std::vector<Value> unstack(Net& net, Value x);
Value stack(Net& net, const std::vector<Value>& steps);
// The mask of time step t, u8 (rows), or an absent one where there is no mask.
Value mask_at(Net& net, Value mask, std::int64_t t);

}  // namespace keel::nn
