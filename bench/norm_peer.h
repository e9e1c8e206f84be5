// oneDNN's own normalization primitives, ready to run beside a norm of ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::bench {

struct NormPeer {
  Kernel forward, backward;  // to be run by the backend; the backward after a forward
  TensorRef y, dx;           // their results
  std::vector<std::unique_ptr<Memory>> memory;
};

// The peer of "layernorm" and of "batchnorm", with gain 1 and bias 0, for these x and dy (f32).
// Nothing for another norm, for a backend other than onednn, and where oneDNN refuses.
std::unique_ptr<NormPeer> make_norm_peer(Backend& backend, const std::string& norm, const Tensor& x,
                                         const Tensor& dy);

}  // namespace keel::bench
