// The part of the Fisher study that takes steps: how far gradient descent turns the weights.
#pragma once

#include "studies/fisher_model.h"

namespace keel::study {

// Regression of fixed targets, one step of gradient descent at rate 0.1 from s W. With a norm the
// gradient at s W is 1 / s of that at W and orthogonal to W, so the step turns W by an angle whose
// tangent goes as 1 / s^2: weights that grow stop turning. The gradient of a row is orthogonal to
// the row itself for batchnorm and weightnorm; for layernorm only the whole matrices are.
void add_steps(const Options& options, std::span<const Glm> models, Result& result);

}  // namespace keel::study
