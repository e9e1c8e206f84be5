// Runs one norm, forward and backward, in guarded buffers: writes outside of a kernel's outputs are
// detected, and reads outside of its inputs give NaN.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::bench {

// The inputs of a norm in its graph; gain and bias may be absent.
struct NormInputs {
  Value x, gain, bias;
  std::vector<Value> state;
  std::map<std::string, Value> more = {};  // further parameters by name: alpha
};

// The values of NormInputs, in float64, and the gradient dy of y. They also serve for parameters
// and states that the build adds itself: a parameter of the same name, and the first states; all
// others start as they are initialized.
struct NormData {
  Tensor x, dy;
  std::optional<Tensor> gain, bias;
  std::vector<Tensor> state;
  double eps = 1e-5;
  std::map<std::string, Tensor> more = {};
};

// Adds the norm to a graph and returns its y.
using NormBuild = std::function<Value(Graph&, const NormInputs&, double eps)>;

// Tensors in the backend's storage type; absent ones have the shape (0).
struct NormResult {
  const OpInfo* op = nullptr;   // of the forward node
  std::vector<Tensor> outputs;  // of the forward node
  // The gradients of the inputs by place: x, gain and bias, as in AffineGradient, then further
  // parameters.
  std::vector<Tensor> gradients;
  std::map<std::string, Tensor> more = {};  // the further parameters
  double offset = 0;                        // the attribute, of the gain
  std::int64_t workspace = 0;               // bytes, of the largest node
};

// Runs forward and backward in float32 as the backend stores it. `in_place` uses every in-place
// claim of the nodes. Throws Error{kCheckFailed} when a kernel writes outside of its outputs and
// its workspace, Error{kBackendMissing} when the backend refuses a node.
NormResult run_norm(Backend& backend, const NormBuild& build, const NormData& data,
                    bool in_place = false);

}  // namespace keel::bench
