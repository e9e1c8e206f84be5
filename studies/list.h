// The studies, one function each; study.cpp names them for the program.
#pragma once

#include "studies/study.h"

namespace keel::study {

Result fisher(const Options& options);
Result invariance(const Options& options);
Result lemma2(const Options& options);
Result theorem1(const Options& options);
Result theorem2(const Options& options);
Result theorem4(const Options& options);
Result theorem1_training(const Options& options);
Result fisher_training(const Options& options);
Result theorem4_training(const Options& options);
Result recurrent_dynamics(const Options& options);
Result figure7(const Options& options);
Result singular_values(const Options& options);
Result batch_size(const Options& options);
Result boundary_units(const Options& options);
Result convergence(const Options& options);
Result covariate_shift(const Options& options);
Result landscape(const Options& options);
Result noisy_batchnorm(const Options& options);
Result statistics(const Options& options);
Result transfer(const Options& options);
Result mini_batchsize(const Options& options);
Result mini_layernorm(const Options& options);
Result mini_powernorm(const Options& options);

}  // namespace keel::study
