#include "frontend/nn/summed_input.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"

namespace keel::nn {
namespace {

Norm without_bias(const Norm& norm) {
  if (!norm.has_bias()) return norm;
  std::string options = norm.options();
  std::ranges::replace(options, ' ', ',');
  std::vector<std::string> no_bias{"bias=false"};
  if (!norm.option("bias_init").empty()) no_bias.emplace_back("bias_init=0");
  return Norm::parse(norm.name(), options, no_bias);
}

// A product with its norm, and with a bias in front of it where that is asked for and the norm has
// none.
LayerOptions product_options(const std::optional<Norm>& norm, const FanInit& init, bool bias) {
  return {.bias = bias && !(norm && norm->has_bias()),
          .weight_init = init,
          .bias_init = [](std::int64_t) { return zeros(); },
          .norm = norm};
}

// Whether a norm has statistics of its own for every time step, so that steps cannot be normalized
// together.
bool goes_by_step(const std::optional<Norm>& norm) {
  return norm && norm->is_batch_type() && norm->name() != "sequencebatchnorm";
}

// The rows of a weight that a norm has made of two, as the two again.
std::pair<Value, Value> parts_of(Graph& g, Value weight, std::int64_t first) {
  const std::int64_t all = g.shape(weight)[0];
  return {ops::slice_axis(g, weight, 0, 0, first),
          ops::slice_axis(g, weight, 0, first, all - first)};
}

}  // namespace

CellNorms cell_norms(const Norm& norm, NormOf of) {
  if (norm.is_none()) return {};
  const bool is_of_weight = !norm.weight_form().is_plain();
  CellNorms norms{.cell = is_of_weight ? std::nullopt : std::optional(norm)};
  if (of == NormOf::kSum) {
    norms.sum = norm;
  } else {
    norms.input = norms.recurrent = norm;
  }
  return norms;
}

CellNorms lstm_norms(const Norm& norm, NormOf of) {
  CellNorms norms = cell_norms(norm, of);
  if (!norm.is_batch_type()) return norms;
  for (std::optional<Norm>* call : {&norms.input, &norms.recurrent, &norms.sum}) {
    if (*call) *call = without_bias(norm);
  }
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

SummedInput::SummedInput(Net& net, const std::string& name, const Sizes& sizes,
                         const SummedInputOptions& options)
    : net_(&net), name_(name), projects_by_step_(goes_by_step(options.norms.input)) {
  const CellNorms& norms = options.norms;
  const bool is_one = norms.sum.has_value();
  check(!is_one || !(norms.input || norms.recurrent), ErrorKind::kUsage,
        "{}: expected a norm of the sum or norms of its terms, got both", name);
  if (!is_one) {
    input_ = Linear(net, name + "/input", sizes.in, sizes.out,
                    product_options(norms.input, options.input_init, !options.bias));
    recurrent_ = Linear(net, name + "/recurrent", sizes.width, sizes.out,
                        product_options(norms.recurrent, options.recurrent_init, false));
  }
  const auto scope = net.graph.scope(name);
  if (is_one) sum_ = make_sum(net, sizes, options);
  if (is_one) gain_init_ = norms.sum->weight_form().gain_init;
  const bool is_due = is_one && !norms.sum->has_bias();
  if (options.bias || is_due) {
    bias_ = net.parameter("bias", {sizes.out}, options.bias ? *options.bias : zeros());
  }
}

// For the scope of the layer.
std::shared_ptr<SummedInput::Sum> SummedInput::make_sum(Net& net, const Sizes& sizes,
                                                        const SummedInputOptions& options) {
  const Norm& norm = *options.norms.sum;
  const WeightForm& form = norm.weight_form();
  const auto weight = [&](const std::string& name, std::int64_t in, const FanInit& init) {
    return net.parameter(name + "/weight", {in, sizes.out},
                         form.normalize ? normal(form.deviation) : init(in, sizes.out));
  };
  Sum sum{.input = weight("input", sizes.in, options.input_init),
          .recurrent = weight("recurrent", sizes.width, options.recurrent_init),
          .norm = NormLayer::behind_weight(net, "norm", norm)};
  if (!form.is_plain()) {
    const Value both = ops::concat(net.graph, {sum.recurrent, sum.input}, 0);
    const WeightParametrization formed = norm.parametrized(net, "norm", both, 1);
    std::tie(sum.recurrent, sum.input) = parts_of(net.graph, formed.weight, sizes.width);
    sum.gain = formed.gain;
  }
  return std::make_shared<Sum>(std::move(sum));
}

std::vector<Value> SummedInput::project(Value x, Value mask) const {
  if (!projects_by_step_) return unstack(*net_, project_step(x, {.mask = mask}));
  std::vector<Value> steps = unstack(*net_, ops::matmul(net_->graph, x, input_->weight()));
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto time = std::int64_t(t);
    steps[t] = biased(input_->after_product(steps[t], {time, mask_at(*net_, mask, time)}));
  }
  return steps;
}

Value SummedInput::project_step(Value x, const LayerCall& call) const {
  if (!is_one()) return biased((*input_)(x, call));
  const auto scope = net_->graph.scope(name_);
  return ops::matmul(net_->graph, x, sum_->input);
}

Value SummedInput::biased(Value x) const {
  if (!bias_.valid()) return x;
  const auto scope = net_->graph.scope(name_);
  return ops::add(net_->graph, x, bias_);
}

SummedInput::Terms SummedInput::operator()(Value projected, Value h, const LayerCall& call,
                                           Value gate) const {
  if (!is_one()) return {(*recurrent_)(h, call), projected};
  Graph& g = net_->graph;
  const auto scope = g.scope(name_);
  Value product = ops::matmul(g, h, sum_->recurrent);
  if (gate.valid()) product = ops::mul(g, gate, product);
  const Value a = normalized(ops::add(g, product, projected), call);
  return {bias_.valid() ? ops::add(g, a, bias_) : a, {}};
}

// For the scope of the layer.
Value SummedInput::normalized(Value sum, const LayerCall& call) const {
  if (net_->mode == Mode::kDataDependentInit && sum_->gain.valid()) {
    if (!sum_->start) {
      sum_->start = measure_batch(*net_, sum, 1, gain_init_);
      start_parameters(*net_, *sum_->start, sum_->gain, {});
    }
    sum = started(*net_, sum, *sum_->start, false);
  }
  return sum_->norm(sum, call);
}

}  // namespace keel::nn
