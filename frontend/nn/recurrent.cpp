#include "frontend/nn/recurrent.h"

#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/random_normal.h"
#include "src/ops/recurrent.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

SummedInputOptions summed_options(const CellOptions& options,
                                  const std::optional<Initializer>& bias = {}) {
  return {options.norms, options.input_init, options.recurrent_init, bias};
}

// The second term of a summed input, which is 0 where the first one is all of it.
Value second_term(Graph& g, const SummedInput::Terms& terms) {
  return terms.w.valid() ? terms.w : g.constant(Tensor(g.type(terms.u)));
}

// `next` in rows of which the mask is not 0, else `before`, to the bit.
Value kept_in_padding(Graph& g, Value next, Value before, Value mask) {
  if (!mask.valid()) return next;
  return ops::select(g, ops::reshape(g, mask, {g.shape(mask)[0], 1}), next, before);
}

Value first_state(Net& net, Value learned, std::int64_t rows, std::int64_t width) {
  const Shape shape{rows, width};
  if (learned.valid()) return ops::broadcast_to(net.graph, learned, shape);
  return net.graph.constant(Tensor(net.dtype, shape));
}

// All time steps of a cell whose only state is h.
template <class Cell, class Projected>
StateRun all_steps(Net& net, const Cell& cell, const std::vector<Projected>& projected, Value state,
                   Value mask) {
  std::vector<Value> h;
  for (std::size_t t = 0; t < projected.size(); ++t) {
    const auto time = std::int64_t(t);
    state = cell.step(projected[t], state, {time, mask_at(net, mask, time)});
    h.push_back(state);
  }
  return {stack(net, h), state};
}

// The gates' first biases: `forget` for the first gate and 0 for the others.
Initializer gate_bias(double forget) {
  return [forget](Tensor& value, const Philox&) {
    Tensor bias(DType::kF32, value.shape());
    const std::span<float> b = bias.as<float>();
    std::fill_n(b.begin(), b.size() / 4, float(forget));
    value = value.dtype() == DType::kF32 ? std::move(bias) : bias.to(value.dtype());
  };
}

}  // namespace

Rnn::Rnn(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
         const CellOptions& options)
    : net_(&net),
      name_(name),
      width_(width),
      sum_(net, name, {in, width, width}, summed_options(options)) {
  if (!options.learns_start) return;
  const auto scope = net.graph.scope(name);
  first_ = net.parameter("start/h", {width}, zeros());
}

Value Rnn::start(std::int64_t rows) const {
  const auto scope = net_->graph.scope(name_);
  return first_state(*net_, first_, rows, width_);
}

std::vector<Value> Rnn::project(Value x, Value mask) const { return sum_.project(x, mask); }

Value Rnn::project_step(Value x, const LayerCall& call) const { return sum_.project_step(x, call); }

Value Rnn::step(Value projected, Value h, const LayerCall& call) const {
  Graph& g = net_->graph;
  const auto [u, w] = sum_(projected, h, call);
  const auto scope = g.scope(name_);
  const Value next = ops::tanh(g, w.valid() ? ops::add(g, u, w) : u);
  return kept_in_padding(g, next, h, call.mask);
}

StateRun Rnn::operator()(Value x, Value mask, Value first) const {
  const std::vector<Value> projected = project(x, mask);
  const Value state = first.valid() ? first : start(net_->graph.shape(x)[1]);
  return all_steps(*net_, *this, projected, state, mask);
}

Lstm::Lstm(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
           const CellOptions& options)
    : net_(&net),
      name_(name),
      width_(width),
      sum_(net, name, {in, width, 4 * width},
           summed_options(options, gate_bias(options.forget_bias))),
      start_noise_(options.start_noise) {
  const auto scope = net.graph.scope(name);
  if (options.norms.cell) cell_norm_ = NormLayer(net, "cell_norm", *options.norms.cell);
  if (!options.learns_start) return;
  first_h_ = net.parameter("start/h", {width}, zeros());
  first_c_ = net.parameter("start/c", {width}, zeros());
}

LstmState Lstm::start(std::int64_t rows) const {
  const auto scope = net_->graph.scope(name_);
  Value h = first_state(*net_, first_h_, rows, width_);
  if (start_noise_ > 0 && net_->training()) {
    Graph& g = net_->graph;
    const RandomKey key = net_->random_key(name_);
    const Value noise =
        ops::random_normal(g, {net_->dtype, {rows, width_}}, key, std::int64_t(net_->seed));
    h = ops::add(g, h, ops::scale(g, noise, start_noise_));
  }
  return {h, first_state(*net_, first_c_, rows, width_)};
}

std::vector<Value> Lstm::project(Value x, Value mask) const { return sum_.project(x, mask); }

Value Lstm::project_step(Value x, const LayerCall& call) const {
  return sum_.project_step(x, call);
}

LstmState Lstm::step(Value projected, const LstmState& before, const LayerCall& call) const {
  Graph& g = net_->graph;
  const SummedInput::Terms sum = sum_(projected, before.h, call);
  const auto scope = g.scope(name_);
  const auto [c, o] = ops::lstm_cell(g, sum.u, second_term(g, sum), before.c, call.mask);
  const Value n = cell_norm_ ? (*cell_norm_)(c, call) : c;
  const Value old = call.mask.valid() ? before.h : Value{};
  return {ops::lstm_output(g, o, n, old, call.mask), c};
}

Lstm::Run Lstm::operator()(Value x, Value mask) const {
  const std::vector<Value> projected = project(x, mask);
  LstmState state = start(net_->graph.shape(x)[1]);
  std::vector<Value> h;
  for (std::size_t t = 0; t < projected.size(); ++t) {
    const auto time = std::int64_t(t);
    state = step(projected[t], state, {time, mask_at(*net_, mask, time)});
    h.push_back(state.h);
  }
  return {stack(*net_, h), state};
}

Gru::Gru(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
         const CellOptions& options)
    : net_(&net),
      name_(name),
      width_(width),
      gates_(net, name + "/gates", {in, width, 2 * width}, summed_options(options)),
      candidate_(net, name + "/candidate", {in, width, width}, summed_options(options)) {
  if (!options.learns_start) return;
  const auto scope = net.graph.scope(name);
  first_ = net.parameter("start/h", {width}, zeros());
}

Value Gru::start(std::int64_t rows) const {
  const auto scope = net_->graph.scope(name_);
  return first_state(*net_, first_, rows, width_);
}

std::vector<Gru::Projected> Gru::project(Value x, Value mask) const {
  const std::vector<Value> gates = gates_.project(x, mask),
                           candidates = candidate_.project(x, mask);
  std::vector<Projected> steps;
  for (std::size_t t = 0; t < gates.size(); ++t) steps.push_back({gates[t], candidates[t]});
  return steps;
}

Gru::Projected Gru::project_step(Value x, const LayerCall& call) const {
  return {gates_.project_step(x, call), candidate_.project_step(x, call)};
}

// The op adds r q to a after the norms; in front of the norm of the sum r is a factor of its own.
Value Gru::step(const Projected& projected, Value h, const LayerCall& call) const {
  Graph& g = net_->graph;
  const SummedInput::Terms gates = gates_(projected.gates, h, call);
  Value r;
  if (candidate_.is_one()) {
    const auto scope = g.scope(name_);
    r = ops::sigmoid(g, ops::slice_axis(g, gates.u, 1, width_, width_));
  }
  const SummedInput::Terms candidate = candidate_(projected.candidate, h, call, r);
  const auto scope = g.scope(name_);
  const Value w = second_term(g, gates), other = second_term(g, candidate);
  const Value a = candidate_.is_one() ? candidate.u : other,
              q = candidate_.is_one() ? other : candidate.u;
  return ops::gru_cell(g, {gates.u, w, a, q, h, call.mask});
}

StateRun Gru::operator()(Value x, Value mask, Value first) const {
  const std::vector<Projected> projected = project(x, mask);
  const Value state = first.valid() ? first : start(net_->graph.shape(x)[1]);
  return all_steps(*net_, *this, projected, state, mask);
}

}  // namespace keel::nn
