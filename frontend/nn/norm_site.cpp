#include "frontend/nn/norm_site.h"

#include "frontend/nn/norm_memory.h"

namespace keel::nn {

NormSite::NormSite(Unchecked, Net& net, const std::string& name, const Norm& norm)
    : name_(name), norm_(norm) {
  const StepStates steps{norm.steps(), norm.names_first_step()};
  memory_ = std::make_shared<NormMemory>(net, net.graph.prefix() + name + "/", steps);
}

NormSite::NormSite(Net& net, const std::string& name, const Norm& norm)
    : NormSite(Unchecked{}, net, name, norm) {
  check(norm.weight_form().is_plain(), ErrorKind::kUsage,
        "[{}] it acts on a layer's weight: expected a layer before {}{}", norm.name(),
        net.graph.prefix(), name);
}

NormSite NormSite::behind_weight(Net& net, const std::string& name, const Norm& norm) {
  return {Unchecked{}, net, name, norm};
}

Value NormSite::operator()(Value x, const Site& site) const {
  check(site.t >= 0, ErrorKind::kUsage, "[{}] t: expected >= 0, got {}", norm_.name(), site.t);
  const auto scope = memory_->graph.scope(name_);
  memory_->begin(site.t);
  const Value y = norm_.apply(*memory_, x, site.mask);
  memory_->finish(site.mask);
  return y;
}

}  // namespace keel::nn
