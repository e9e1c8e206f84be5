#include "frontend/nn/recurrent_norm.h"

#include <algorithm>

#include "frontend/nn/init.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/reduce.h"

namespace keel::nn {

RecurrentNorm::RecurrentNorm(Net& net, const std::string& name, const RecurrentNormOptions& options)
    : net_(net), path_(net.graph.prefix() + (name.empty() ? "" : name + "/")), options_(options) {
  check(options.steps >= 1, ErrorKind::kUsage, "[recurrentbatchnorm] steps: expected >= 1, got {}",
        options.steps);
}

void RecurrentNorm::add_parameters(Value x) {
  features_ = Shape{net_.graph.shape(x)[1]};
  const auto parameter = [&](const char* name, double initial) {
    return net_.graph.parameter(path_ + name, {net_.dtype, features_}, constant(initial),
                                {.decays = false});
  };
  if (options_.gain) affine_.gain = parameter("gain", options_.gain_init);
  if (options_.bias) affine_.bias = parameter("bias", 0);
}

void RecurrentNorm::add_step() {
  Graph& g = net_.graph;
  const std::string step = fmt::format("{}t{}/", path_, running_.size());
  const auto average = [&](const char* name, double initial, const Bounds& bounds) {
    return g.state(step + name, {net_.dtype, features_}, constant(initial), bounds);
  };
  const Statistics own{average("mean", 0, {}), average("var", 1, kNotNegative)};
  const Value seen = g.state(step + "seen", {net_.dtype, {}}, constant(0));
  if (net_.training() || running_.empty()) {
    population_.push_back(own);
  } else {
    const Statistics before = population_.back();
    const Value is_trained = ops::less(g, g.constant(0, net_.dtype), seen);
    population_.push_back({ops::select(g, is_trained, own.mean, before.mean),
                           ops::select(g, is_trained, own.var, before.var)});
  }
  running_.push_back(own);
  seen_.push_back(seen);
}

// () 1, or 0 when the mask leaves every row out.
Value RecurrentNorm::has_rows(Value mask) {
  Graph& g = net_.graph;
  return mask.valid() ? ops::max(g, ops::cast(g, mask, net_.dtype)) : g.constant(1, net_.dtype);
}

Value RecurrentNorm::operator()(Value x, std::int64_t t, Value mask) {
  check(t >= 0, ErrorKind::kUsage, "[recurrentbatchnorm] t: expected >= 0, got {}", t);
  if (running_.empty()) add_parameters(x);
  const auto k = std::size_t(std::min(t, options_.steps - 1));
  while (running_.size() <= k) add_step();
  const BatchNormAttrs attrs{
      .eps = options_.eps, .keep = options_.keep, .training = net_.training()};
  const Statistics& of = population_[k];
  const Value y = ops::batch_norm(net_.graph, x, affine_, {of.mean, of.var, mask}, attrs);
  if (net_.training() && t < options_.steps) {
    net_.update(running_[k].mean, y.at(3));
    net_.update(running_[k].var, y.at(4));
    net_.update(seen_[k], ops::add(net_.graph, seen_[k], has_rows(mask)));
  }
  return y;
}

}  // namespace keel::nn
