// The place that a model is built in: a graph, a mode and the keys of random numbers. Layers refer
// to a Net, which has to outlive them. Their parameters and states are leaves of its graph.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/ops/random_key.h"

namespace keel::nn {

enum class Mode {
  // Norms take the statistics of the batch and update their running ones; there is dropout.
  kTrain,
  // Everything is computed as in kTrain, but nothing that persists changes.
  kProbe,
  // Norms take their running statistics; there is no dropout.
  kEvaluate,
  // Everything is as in kProbe, but layers whose first values depend on data write these. Such a
  // graph runs once, on the first batch, before the first step. It is apart from the graph of a
  // step because that would have to update a parameter twice, and would compute the statistics that
  // the first values need in every step.
  kDataDependentInit,
};

// A scalar that a layer has monitored while it trains. The log shows the largest one of those that
// have the same name, and training warns of the first that is above its limit.
struct Monitor {
  std::string name;  // of the quantity, such as "powernorm.nu_max"
  Value value;       // ()
  double limit = std::numeric_limits<double>::infinity();
  std::string beyond = {};  // what a value above the limit means
  std::string layer = {};   // such as "fc1/norm"; Net::monitor fills it in
};

// The treatment of values that an evaluation computes only from parameters and keeps from run to
// run, such as the products of a weight with the rows of a table.
enum class Kept {
  kNothing,  // It keeps none, and computes its results without them.
  kRead,     // It reads those written before; parameters must not have changed since.
  kWrite,    // It writes them all; its other results are of no interest.
};

struct Net {
  Graph& graph;
  Mode mode = Mode::kTrain;
  std::uint64_t seed = 0;
  // Random numbers depend on the seed, on the number of the update and on the number of the batch's
  // first row among the rows of the whole update. The last two are () i32.
  Value step = {}, first_row = {};
  DType dtype = DType::kF32;
  std::vector<Monitor>* monitors = nullptr;  // takes the monitors, unless it is null
  Kept kept = Kept::kNothing;                // in Mode::kEvaluate
  // In training: the shards of a batch over which norms of columns take their statistics together.
  // 1: each takes those of its own rows.
  std::int64_t shards = 1;
  // The standard deviation of norms' gains at the start.
  double gain_deviation = 0;

  // Returns step and first_row for `layer`, which draws. Throws Error{kUsage} if one is absent.
  RandomKey random_key(std::string_view layer) const {
    check(step.valid() && first_row.valid(), ErrorKind::kUsage,
          "{}: expected a step and a first_row to draw random numbers by", layer);
    return {step, first_row};
  }
  // Makes the parameter "<scope>/<name>" of the layer being built. One with at most one axis is a
  // gain or a bias and does not decay.
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer) const {
    return parameter(name, shape, std::move(initializer), {.decays = shape.rank() > 1});
  }
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer,
                  const ParameterFacts& facts) const {
    return graph.parameter(graph.prefix() + name, {dtype, shape}, std::move(initializer), facts);
  }
  bool training() const { return mode != Mode::kEvaluate; }
  // Whether values may be kept from run to run.
  bool keeps() const { return kept != Kept::kNothing; }
  // The value kept as "<scope>/<name>"; make() adds the nodes that compute it.
  template <class Make>
  Value keep(const std::string& name, const Shape& shape, const Make& make) const {
    const Value leaf = graph.derived(graph.prefix() + name, {dtype, shape});
    if (kept == Kept::kWrite) graph.mark_update(leaf, make());
    return leaf;
  }
  // Updates a running statistic, unless this is a probe.
  void update(Value leaf, Value next) const {
    if (mode == Mode::kTrain) graph.mark_update(leaf, next);
  }
  // Updates every state that a backward changes, as listed in Gradients::states.
  void update(std::span<const Update> states) const {
    for (const Update& state : states) update(state.leaf, state.next);
  }
  void monitor(Monitor w) const {
    if (!monitors) return;
    w.layer = graph.prefix().substr(0, graph.prefix().rfind('/'));
    monitors->push_back(std::move(w));
  }
};

}  // namespace keel::nn
