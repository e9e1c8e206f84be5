// The steps of the Fisher study: the angle by which gradient descent turns the weights.
#pragma once

#include "studies/fisher_model.h"

namespace keel::study {

// Regression on fixed targets: one step of gradient descent at rate 0.1 from s W. With a norm the
// gradient at s W is 1 / s of that at W and orthogonal to W. So the step turns W by an angle whose
// tangent is proportional to 1 / s^2: weights that grow stop turning. For batchnorm and weightnorm
// the gradient of a row is orthogonal to that row; for layernorm only the whole matrices are.
void add_steps(const Options& options, std::span<const Glm> models, Result& result);

}  // namespace keel::study
