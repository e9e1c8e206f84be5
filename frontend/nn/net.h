// What a model is being built into: a graph, a mode and the random keys. Layers are functions over
// a Net; they keep no state of their own.
#pragma once

#include <string>

#include "src/graph/graph.h"

namespace keel::nn {

enum class Mode {
  kTrain,     // batch statistics, dropout; running state is updated
  kProbe,     // as kTrain, but nothing that persists changes
  kEvaluate,  // running statistics, no dropout
  // As kProbe, but layers whose first values depend on data write them. They run once, on the first
  // batch, as a graph of their own: a step would need a second update of the same leaf, and would
  // go on paying for the statistics.
  kInitialize,
};

struct Net {
  Graph& graph;
  Mode mode = Mode::kTrain;
  std::uint64_t seed = 0;
  Value tick = {};  // () i32, counts training forwards; needed by dropout
  DType dtype = DType::kF32;

  bool training() const { return mode != Mode::kEvaluate; }
  // The new value of a running statistic, kept unless this is a probe.
  void update(Value leaf, Value next) const {
    if (mode == Mode::kTrain) graph.mark_update(leaf, next);
  }
};

}  // namespace keel::nn
