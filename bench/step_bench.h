// `keel bench step` measures a whole training step and, in the same run, its floor: only the
// products and the optimizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/library_peer.h"
#include "bench/timing.h"
#include "frontend/train/job.h"
#include "src/runtime/program.h"

namespace keel::bench {

struct StepBench {
  Timing step;               // forward, backward, clipping, optimizer
  Timing products;           // only its matrix products and convolutions, through the same kernels
  Timing optimizer;          // only its optimizer updates: one pass over parameters and moments
  Timing copy;               // a plain copy of as many bytes as the optimizer must move
  double products_flop = 0;  // operations of the products: two for a multiply and add
  std::int64_t optimizer_bytes = 0;
  std::vector<NodeTime> profile;
  std::optional<PeerTimes> peer;  // of a step; blocks of 10 rounds of either alternate
  std::optional<PeerTimes> peer_under_load;
  std::string peer_refusal;  // why the library, or some of its modes, has no times, or ""

  // step / (products + optimizer)
  double ratio() const { return step.median / (products.median + optimizer.median); }
};

// A training step to be measured.
struct MeasuredStep {
  const Graph& graph;                   // with the output "grad_norm"
  std::function<void(Program&)> feed;   // gives it its inputs
  std::function<PeerCase()> peer_case;  // the same step for another library
};
// Measures it beside its own products and optimizer; a library is measured unless `library` is
// null.
StepBench measure_step(Backend& backend, const MeasuredStep& measured, int rounds,
                       LibraryPeer* library = nullptr);

// Measures a step of the job; a library is measured beside it unless `library` is null.
StepBench bench_step(Backend& backend, const train::Job& job, int rounds,
                     LibraryPeer* library = nullptr);

inline constexpr double kLearningRate = 1e-6;  // so low that parameters hardly change

// The batch in the middle of the job's training data, which are not shuffled: of sentences it is
// one of middling length. `stream` owns the batch.
struct TypicalBatch {
  explicit TypicalBatch(const train::Job& job);

  std::unique_ptr<task::Stream> stream;
  const task::Batch& batch;
};
// Feeds that batch, and this learning rate, to a step for its sizes.
void feed_batch(Program& step, const train::Job& job);

using MakeBackend = std::function<std::unique_ptr<Backend>()>;

// The results of `keel bench overhead`: the time of the run loop itself.
struct OverheadBench {
  int kernels = 0;
  double nanoseconds_per_kernel = 0;
  double build_seconds = 0, compile_seconds = 0;
};

// Measures the seconds that a program takes to its first result: it makes a backend, builds the
// step and compiles it for the backend, draws initial values and runs one step on inputs that are
// zero. Call it before everything else in a process, because what ran before makes it faster.
double first_step_seconds(const train::Job& job, const MakeBackend& make);

// Builds the step, compiles it for the null backend and runs it.
OverheadBench bench_overhead(const train::Job& job, int rounds);

}  // namespace keel::bench
