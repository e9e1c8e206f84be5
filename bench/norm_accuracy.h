// How far the norms of a backend are from the float64 reference (keel bench accuracy), and which
// bits they give (keel bench norms --hashes).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/norm_cases.h"
#include "src/runtime/backend.h"

namespace keel::bench {

// The largest error of one kind over all cases, in units of the float eps 2^-23 on the scale of
// bench/norm_errors.h, and the case (NormCase) where it was met.
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

// The cases of a layout, such as generated_cases.
using CasesOf = std::function<std::vector<NormCase>(NormLayout)>;

// One training step of a norm from its initial state, forward and backward, once on every case of
// its layouts. `norm` is an input of nn::Norm::parse; its options override those of a case (eps,
// gain, bias). The scaling before powernorm is left out: groupscaling is measured by itself.
NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, const CasesOf& cases_of);

// The same on the one case that a text describes.
NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, std::string_view at);

// The bits of a training step of a norm on a case, forward and backward.
struct NormHash {
  std::string of;      // the norm and the case
  std::uint64_t hash;  // 64-bit FNV-1a of the outputs and gradients, float32 in little-endian order
};
// The hashes of a norm on hashed_cases(layout), for its layouts.
std::vector<NormHash> norm_hashes(Backend& backend, const std::string& norm);

}  // namespace keel::bench
