// A norm with or without a scaling of rows in front of it (Shen et al. 2020, appendix A.1), for the
// norms of a Transformer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/norm.h"
#include "src/graph/option.h"

namespace keel::nn {

// y = norm(x / sqrt(mean(x^2) + eps)), the mean taken over a row, or over each group of it. A norm
// that scales rows itself, as powernorm does in groups (heads), is not scaled a second time.
class ScaledNorm {
 public:
  ScaledNorm(Norm norm) : norm_(std::move(norm)) {}  // NOLINT: implicit, without a scaling
  // `scaling` is "layerscaling" or "groupscaling", with options or without, or empty. Throws
  // Error{kUsage} as Norm::parse, and "scaling: expected ..." for another norm.
  static ScaledNorm parse(std::string_view norm, std::string_view scaling = "");

  // As Norm. The scaling has neither parameters nor states.
  Value operator()(Net& net, const std::string& name, Value x, Value mask = {}) const;
  const Norm& norm() const { return norm_; }

 private:
  Norm norm_;
  std::optional<Norm> scaling_;
};

// The range of an option that holds the text of a scaling.
constexpr Range scaling_name() { return described("layerscaling or groupscaling, or empty"); }

}  // namespace keel::nn
