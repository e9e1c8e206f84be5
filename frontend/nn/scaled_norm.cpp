#include "frontend/nn/scaled_norm.h"

namespace keel::nn {

ScaledNorm ScaledNorm::parse(std::string_view norm, std::string_view scaling) {
  ScaledNorm result(Norm::parse(norm));
  if (scaling.empty()) return result;
  const Norm front = Norm::parse(scaling);
  check(front.name() == "layerscaling" || front.name() == "groupscaling", ErrorKind::kUsage,
        "scaling: expected layerscaling or groupscaling, got '{}'", scaling);
  if (!result.norm_.scales_rows()) result.scaling_ = front;
  return result;
}

Value ScaledNorm::operator()(Net& net, const std::string& name, Value x, Value mask) const {
  if (scaling_) x = (*scaling_)(net, name + "/scaling", x, mask);
  return norm_(net, name, x, mask);
}

}  // namespace keel::nn
