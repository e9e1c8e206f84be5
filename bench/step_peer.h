// A training step in the form that the child process of another library takes.
#pragma once

#include "bench/library_peer.h"
#include "frontend/train/job.h"
#include "src/runtime/backend.h"

namespace keel::bench {

// The step of the job's model, on the first batch of its data, from our initial parameters; its
// loss and gradient norm are expected. Throws Error{kUsage} for clipping or accumulation, which
// the peer does not have.
PeerCase step_case(Backend& backend, const train::Job& job);

}  // namespace keel::bench
