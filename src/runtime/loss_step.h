// linear_cross_entropy_step as its forward and then its backward, for backends without a kernel
// that does both at once.
#pragma once

#include <algorithm>
#include <vector>

#include "src/ops/linear_cross_entropy.h"
#include "src/runtime/backend.h"

namespace keel {

// The forward's inputs are those of the step but the last, dsum; its outputs are the first three.
inline Binding forward_of_step(const Binding& step) {
  Binding forward{{}, {}, step.workspace};
  forward.inputs.assign(step.inputs.begin(), step.inputs.begin() + LinearLossStep::kDsumInput);
  forward.outputs.assign(step.outputs.begin(),
                         step.outputs.begin() + LinearLossStep::kFirstGradient);
  return forward;
}

inline Binding backward_of_step(const Binding& step) {
  Binding backward{{}, {}, step.workspace};
  backward.inputs.assign(step.inputs.begin(), step.inputs.begin() + LinearLossStep::kDsumInput);
  backward.inputs.push_back(step.outputs[LinearLossOutput::kLse]);
  backward.inputs.push_back(step.inputs[LinearLossStep::kDsumInput]);
  backward.outputs.assign(step.outputs.begin() + LinearLossStep::kFirstGradient,
                          step.outputs.end());
  return backward;
}

// `forward` and `backward` were prepared with the context of the step.
inline Prepared one_after_the_other(Prepared forward, Prepared backward) {
  if (!forward.refusal.empty()) return forward;
  return {[forward = forward.bind, backward = backward.bind](const Binding& b) -> Kernel {
            return [first = forward(forward_of_step(b)), second = backward(backward_of_step(b))] {
              first();
              second();
            };
          },
          std::max(forward.workspace, backward.workspace),
          {},
          forward.holds + backward.holds};
}

}  // namespace keel
