// keel bench accuracy: how far the norms of a backend are from the float64 reference.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/compare/cases/norm_cases.h"
#include "src/runtime/backend.h"

namespace keel::bench {

// The largest error of one kind over all cases, in units of the float eps 2^-23 on the scale of
// frontend/compare/cases/norm_errors.h, and the case (compare::NormCase) where it was met.
struct WorstError {
  std::string of;  // "forward", "dx" or "parameters"
  double bound = 0;
  double error = 0;
  std::string at = {};

  bool holds() const { return error <= bound; }
};

struct NormAccuracy {
  std::string norm;
  std::int64_t cases = 0;
  std::vector<WorstError> worst;  // parameters only of a norm that has some
};

// The norms measured by default: every norm of `keel list norms`, with the options that change the
// mathematics, except none, which does nothing, weightnorm, a norm of weights, and noisybatchnorm,
// recurrentbatchnorm and sequencebatchnorm, which run batchnorm's kernels.
std::vector<std::string> accuracy_norms();

// The cases of a layout, such as compare::generated_cases.
using CasesOf = std::function<std::vector<compare::NormCase>(compare::NormLayout)>;

// One training step of a norm from its initial state, forward and backward, once on every case of
// its layouts. `norm` is an input of nn::Norm::parse; its options override those of a case (eps,
// gain, bias). The scaling before powernorm is left out: groupscaling is measured by itself.
NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, const CasesOf& cases_of);

// The same on the one case that a text describes.
NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, std::string_view at);

}  // namespace keel::bench
