// Population statistics of column norms, by a pass over the training data (Cooijmans et al. 2016,
// section 3): evaluation then normalizes by the mean of the statistics that the trained weights
// give, and not by a running average that still holds those of earlier weights.
#pragma once

#include <cstdint>
#include <functional>

#include "frontend/train/job.h"
#include "src/runtime/variables.h"

namespace keel::train {

// Runs the first epoch of the training rows forward, in the batches of training, or in whole
// updates where micro-batches share their statistics, with dropout and the other noise of training.
// Every running mean, variance and quadratic mean of batchnorm, noisybatchnorm, recurrentbatchnorm,
// sequencebatchnorm and pn_v takes the unweighted mean of the values over all batches that had a
// row; where no batch had one, the running average stays. As in training, time steps beyond the
// last that has its own statistics do not count.
// Nothing else in `variables` changes. `tell` receives the batches done and the number that there
// are.
//   variables: those of an evaluation, with the weights loaded
// Throws Error{kUsage} if the network has no such norm, if one has keep = 1, or if it has
// powernorm, mabn or batchrenorm: these normalize by running statistics while they train, too.
using TellPass = std::function<void(std::int64_t done, std::int64_t of)>;
void take_population_statistics(Backend& backend, Variables& variables, const Job& job,
                                const TellPass& tell = {});

}  // namespace keel::train
