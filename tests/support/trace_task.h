// A synthetic task whose answer depends on earlier inputs; it tests networks with carries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/train/job.h"
#include "tests/support/small_run.h"

namespace keel::test {

// Sequences of numbers x lie one after another in lanes, a row of a batch each; a batch has one
// number of every lane. The target is the trace y_t = 0.6 y_(t-1) + x_t of the sequence so far,
//   h_t = tanh(x_t w + h_(t-1) u + b),   prediction = h_t v,   the loss is the squared error,
// where h (rows, 3) is the carry "cell/h". Training has 4 lanes of 12 numbers, in each of which a
// sequence begins at another step; evaluation has 3 lanes. `probes` gets "h" as an output. With
// "model.spoilt_step=N" the training has a NaN in step N of every epoch.
train::Job trace_job(const Settings& settings = {});

inline constexpr std::int64_t kTraceSteps = 12;  // of an epoch
inline const std::string kTraceCarry = "cell/h";

}  // namespace keel::test
