#include "frontend/nn/norm_states.h"

#include <algorithm>

#include "frontend/nn/init.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::nn {

NormStates::NormStates(Net& of, std::string path, const StepStates& steps)
    : net(of), graph(of.graph), path_(std::move(path)), steps_(steps) {}

void NormStates::begin(std::int64_t t) {
  t_ = t;
  k_ = std::min(t, steps_.count - 1);
  has_states_ = false;
}

void NormStates::finish(Value mask) {
  if (!has_states_ || !is_counted(k_)) return;
  const Value before = seen(k_);
  if (!net.training()) return;
  // 1, or 0 when the mask leaves every row out.
  const Value trained = mask.valid() ? ops::max(graph, ops::cast(graph, mask, net.dtype))
                                     : graph.constant(1, net.dtype);
  update(before, ops::add(graph, before, trained));
}

Value NormStates::parameter(const std::string& name, const Shape& shape, Initializer initializer) {
  Value& parameter = parameters_[name];
  if (!parameter.valid()) {
    parameter = graph.parameter(path_ + name, {net.dtype, shape}, std::move(initializer),
                                {.decays = false});
  }
  return parameter;
}

ops::NormAffine NormStates::affine(const Shape& shape, const AffineOptions& options) {
  ops::NormAffine result;
  const Initializer first = net.gain_deviation > 0 ? normal(net.gain_deviation, options.gain_init)
                                                   : constant(options.gain_init);
  if (options.gain) result.gain = parameter("gain", shape, first);
  if (options.bias) result.bias = parameter("bias", shape, constant(options.bias_init));
  return result;
}

Value NormStates::state(const std::string& name, const Shape& shape, double initial,
                        const std::optional<Bounds>& bounds) {
  const auto at = [&](std::int64_t k) {
    return read({name, k}, {net.dtype, shape}, constant(initial), bounds);
  };
  if (net.training() || k_ == 0) return at(k_);
  Value population = at(0);
  for (std::int64_t k = 1; k <= k_; ++k) {
    at(k);
    population = this->population({name, k}, population);
  }
  return population;
}

Value NormStates::counter(const std::string& name) {
  return read({name, k_}, {DType::kI32, {}}, nullptr, kStepCount);
}

void NormStates::update(Value read, Value next) {
  if (t_ >= steps_.count) return;
  const auto found =
      std::ranges::find(states_, read, [](const auto& entry) { return entry.second.now; });
  check(found != states_.end(), ErrorKind::kUsage, "norm: an update of what is no state of it");
  State& state = found->second;
  state.now = next;
  if (net.mode != Mode::kTrain) return;
  if (graph.next_of(state.leaf).valid()) {
    graph.replace_update(state.leaf, next);
  } else {
    graph.mark_update(state.leaf, next);
  }
}

std::string NormStates::path_of(std::int64_t k) const {
  return is_counted(k) ? fmt::format("{}t{}/", path_, k) : path_;
}

Value NormStates::read(const Key& key, const TensorType& type, Initializer initializer,
                       const std::optional<Bounds>& bounds) {
  has_states_ = true;
  State& state = states_[key];
  if (!state.leaf.valid()) {
    const std::string name = path_of(key.second) + key.first;
    state.leaf = state.now = graph.state(name, type, std::move(initializer), bounds);
  }
  return state.now;
}

Value NormStates::seen(std::int64_t k) {
  return read({"seen", k}, {net.dtype, {}}, constant(0), {});
}

// The value of step k itself if it was ever trained, else that of the steps before.
Value NormStates::population(const Key& key, Value before) {
  State& state = states_[key];
  if (!state.population.valid()) {
    const Value is_trained = ops::less(graph, graph.constant(0, net.dtype), seen(key.second));
    state.population = ops::select(graph, is_trained, state.leaf, before);
  }
  return state.population;
}

}  // namespace keel::nn
