// keel bench step: a whole training step beside its floor, measured in the same run.
#pragma once

#include <string>
#include <vector>

#include "bench/timing.h"
#include "frontend/train/config.h"
#include "src/runtime/program.h"

namespace keel::bench {

struct StepBench {
  Timing step;       // forward, backward, clipping, optimizer
  Timing products;   // its matrix products and convolutions alone, through the same kernels
  Timing optimizer;  // its optimizer updates alone: one pass over parameters and moments
  Timing copy;       // a plain copy of as many bytes as the optimizer must move
  std::int64_t optimizer_bytes = 0;
  std::vector<NodeTime> profile;

  // step / (products + optimizer)
  double ratio() const { return step.median / (products.median + optimizer.median); }
};

StepBench bench_step(Backend& backend, const train::Config& config, int rounds);

// keel bench overhead: what the run loop itself costs.
struct OverheadBench {
  int kernels = 0;
  double nanoseconds_per_kernel = 0;
  double build_seconds = 0, compile_seconds = 0;
};

// Builds the step, compiles it for the null backend and runs it.
OverheadBench bench_overhead(const train::Config& config, int rounds);

}  // namespace keel::bench
