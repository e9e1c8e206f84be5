// keel bench step: a whole training step beside its floor, measured in the same run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/timing.h"
#include "bench/torch_peer.h"
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
  std::optional<TorchTimes> torch;  // of a step; blocks of 10 rounds of either alternate
  std::string torch_refusal;        // why PyTorch, or some of its modes, has no times

  // step / (products + optimizer)
  double ratio() const { return step.median / (products.median + optimizer.median); }
};

// PyTorch is measured unless `torch` is null.
StepBench bench_step(Backend& backend, const train::Config& config, int rounds,
                     TorchPeer* torch = nullptr);

inline constexpr double kLearningRate = 1e-6;  // changes next to nothing

// The batch in the middle of the config's training data, in order, which of sentences is one of
// middling length; `stream` owns it.
struct TypicalBatch {
  explicit TypicalBatch(const train::Config& config);

  std::unique_ptr<task::Stream> stream;
  const task::Batch& batch;
};
// Feeds that batch, and this learning rate, to a step for its sizes.
void feed_batch(Program& step, const train::Config& config);

using MakeBackend = std::function<std::unique_ptr<Backend>()>;

// keel bench overhead: what the run loop itself costs.
struct OverheadBench {
  int kernels = 0;
  double nanoseconds_per_kernel = 0;
  double build_seconds = 0, compile_seconds = 0;
};

// Seconds that a program takes to its first result: a backend is made, the step built and compiled
// for it, initial values drawn, and one step run on inputs that are zero. To be called first: what
// it takes depends on what the process has done before.
double first_step_seconds(const train::Config& config, const MakeBackend& make);

// Builds the step, compiles it for the null backend and runs it.
OverheadBench bench_overhead(const train::Config& config, int rounds);

}  // namespace keel::bench
