#include "frontend/nn/recurrent.h"

#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/random_normal.h"
#include "src/ops/recurrent.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

LayerOptions layer_options(const std::optional<Norm>& norm, const FanInit& init, bool bias) {
  return {.bias = bias && !(norm && norm->has_bias()),
          .weight_init = init,
          .bias_init = [](std::int64_t) { return zeros(); },
          .norm = norm};
}

Norm without_bias(const Norm& norm) {
  if (!norm.has_bias()) return norm;
  std::string options = norm.options();
  std::ranges::replace(options, ' ', ',');
  std::vector<std::string> no_bias{"bias=false"};
  if (!norm.option("bias_init").empty()) no_bias.emplace_back("bias_init=0");
  return Norm::parse(norm.name(), options, no_bias);
}

// Whether a norm has statistics of its own for every time step, so that steps cannot be normalized
// together.
bool goes_by_step(const std::optional<Norm>& norm) {
  return norm && norm->is_batch_type() && norm->name() != "sequencebatchnorm";
}

// What `layer` makes of every time step of x.
std::vector<Value> project_all(Net& net, const Linear& layer, bool by_step, Value x, Value mask) {
  if (!by_step) return unstack(net, layer(x, {.mask = mask}));
  std::vector<Value> steps = unstack(net, ops::matmul(net.graph, x, layer.weight()));
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto time = std::int64_t(t);
    steps[t] = layer.after_product(steps[t], {time, mask_at(net, mask, time)});
  }
  return steps;
}

Value first_state(Net& net, Value learned, std::int64_t rows, std::int64_t width) {
  const Shape shape{rows, width};
  if (learned.valid()) return ops::broadcast_to(net.graph, learned, shape);
  return net.graph.constant(Tensor(net.dtype, shape));
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

CellNorms cell_norms(const Norm& norm) {
  if (norm.is_none()) return {};
  const bool is_of_weight = !norm.weight_form().is_plain();
  return {norm, norm, is_of_weight ? std::nullopt : std::optional(norm)};
}

CellNorms lstm_norms(const Norm& norm) {
  CellNorms norms = cell_norms(norm);
  if (norm.is_batch_type()) norms.input = norms.recurrent = without_bias(norm);
  return norms;
}

std::vector<Value> unstack(Net& net, Value x) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  const Shape step(std::vector(shape.sizes().begin() + 1, shape.sizes().end()));
  std::vector<Value> steps = ops::split(g, x, shape[0]);
  for (Value& each : steps) each = ops::reshape(g, each, step);
  return steps;
}

Value stack(Net& net, const std::vector<Value>& steps) {
  Graph& g = net.graph;
  std::vector<Value> parts;
  for (Value step : steps) {
    std::vector<std::int64_t> sizes{1};
    for (std::int64_t size : g.shape(step).sizes()) sizes.push_back(size);
    parts.push_back(ops::reshape(g, step, Shape(sizes)));
  }
  return ops::concat(g, parts, 0);
}

Value mask_at(Net& net, Value mask, std::int64_t t) {
  if (!mask.valid()) return {};
  Graph& g = net.graph;
  return ops::reshape(g, ops::slice_axis(g, mask, 0, t, 1), {g.shape(mask)[1]});
}

Lstm::Lstm(Net& net, const std::string& name, std::int64_t in, std::int64_t width,
           const CellOptions& options)
    : net_(&net),
      name_(name),
      width_(width),
      input_(net, name + "/input", in, 4 * width,
             layer_options(options.norms.input, options.input_init, false)),
      recurrent_(net, name + "/recurrent", width, 4 * width,
                 layer_options(options.norms.recurrent, options.recurrent_init, false)),
      start_noise_(options.start_noise),
      projects_by_step_(goes_by_step(options.norms.input)) {
  const auto scope = net.graph.scope(name);
  bias_ = net.parameter("bias", {4 * width}, gate_bias(options.forget_bias));
  if (options.norms.cell) cell_norm_ = NormSite(net, "cell_norm", *options.norms.cell);
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

std::vector<Value> Lstm::project(Value x, Value mask) const {
  if (!projects_by_step_) return unstack(*net_, project_step(x, {.mask = mask}));
  std::vector<Value> steps = project_all(*net_, input_, true, x, mask);
  for (Value& step : steps) step = biased(step);
  return steps;
}

Value Lstm::project_step(Value x, const Site& site) const { return biased(input_(x, site)); }

Value Lstm::biased(Value projected) const {
  const auto scope = net_->graph.scope(name_);
  return ops::add(net_->graph, projected, bias_);
}

LstmState Lstm::step(Value projected, const LstmState& before, const Site& site) const {
  Graph& g = net_->graph;
  const Value u = recurrent_(before.h, site);
  const auto scope = g.scope(name_);
  const auto [c, o] = ops::lstm_cell(g, u, projected, before.c, site.mask);
  const Value n = cell_norm_ ? (*cell_norm_)(c, site) : c;
  const Value old = site.mask.valid() ? before.h : Value{};
  return {ops::lstm_output(g, o, n, old, site.mask), c};
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
      gates_input_(net, name + "/gates/input", in, 2 * width,
                   layer_options(options.norms.input, options.input_init, true)),
      gates_recurrent_(net, name + "/gates/recurrent", width, 2 * width,
                       layer_options(options.norms.recurrent, options.recurrent_init, false)),
      candidate_input_(net, name + "/candidate/input", in, width,
                       layer_options(options.norms.input, options.input_init, true)),
      candidate_recurrent_(net, name + "/candidate/recurrent", width, width,
                           layer_options(options.norms.recurrent, options.recurrent_init, false)),
      projects_by_step_(goes_by_step(options.norms.input)) {
  if (!options.learns_start) return;
  const auto scope = net.graph.scope(name);
  first_ = net.parameter("start/h", {width}, zeros());
}

Value Gru::start(std::int64_t rows) const {
  const auto scope = net_->graph.scope(name_);
  return first_state(*net_, first_, rows, width_);
}

std::vector<Gru::Projected> Gru::project(Value x, Value mask) const {
  const std::vector<Value> gates = project_all(*net_, gates_input_, projects_by_step_, x, mask);
  const std::vector<Value> candidates =
      project_all(*net_, candidate_input_, projects_by_step_, x, mask);
  std::vector<Projected> steps;
  for (std::size_t t = 0; t < gates.size(); ++t) steps.push_back({gates[t], candidates[t]});
  return steps;
}

Gru::Projected Gru::project_step(Value x, const Site& site) const {
  return {gates_input_(x, site), candidate_input_(x, site)};
}

Value Gru::step(const Projected& projected, Value h, const Site& site) const {
  Graph& g = net_->graph;
  const Value u = gates_recurrent_(h, site), q = candidate_recurrent_(h, site);
  const auto scope = g.scope(name_);
  return ops::gru_cell(g, {u, projected.gates, projected.candidate, q, h, site.mask});
}

Gru::Run Gru::operator()(Value x, Value mask, Value first) const {
  const std::vector<Projected> projected = project(x, mask);
  Value state = first.valid() ? first : start(net_->graph.shape(x)[1]);
  std::vector<Value> h;
  for (std::size_t t = 0; t < projected.size(); ++t) {
    const auto time = std::int64_t(t);
    state = step(projected[t], state, {time, mask_at(*net_, mask, time)});
    h.push_back(state);
  }
  return {stack(*net_, h), state};
}

}  // namespace keel::nn
