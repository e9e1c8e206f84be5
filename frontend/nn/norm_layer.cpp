#include "frontend/nn/norm_layer.h"

#include "frontend/nn/norm_states.h"

namespace keel::nn {

NormLayer::NormLayer(Unchecked, Net& net, const std::string& name, const Norm& norm)
    : name_(name), norm_(norm) {
  const StepStates steps{norm.steps(), norm.names_first_step()};
  memory_ = std::make_shared<NormStates>(net, net.graph.prefix() + name + "/", steps);
}

NormLayer::NormLayer(Net& net, const std::string& name, const Norm& norm)
    : NormLayer(Unchecked{}, net, name, norm) {
  check(norm.weight_form().is_plain(), ErrorKind::kUsage,
        "[{}] it acts on a layer's weight: expected a layer before {}{}", norm.name(),
        net.graph.prefix(), name);
}

NormLayer NormLayer::behind_weight(Net& net, const std::string& name, const Norm& norm) {
  return {Unchecked{}, net, name, norm};
}

Value NormLayer::operator()(Value x, const LayerCall& call) const {
  check(call.t >= 0, ErrorKind::kUsage, "[{}] t: expected >= 0, got {}", norm_.name(), call.t);
  const auto scope = memory_->graph.scope(name_);
  memory_->begin(call.t);
  const Value y = norm_.apply(*memory_, x, call.mask);
  memory_->finish(call.mask);
  return y;
}

}  // namespace keel::nn
