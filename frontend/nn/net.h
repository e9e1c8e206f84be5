// What a model is being built into: a graph, a mode and the random keys. Layers refer to a Net,
// which has to outlive them; what they learn and remember are leaves of its graph.
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
  kTrain,     // batch statistics, dropout; running state is updated
  kProbe,     // as kTrain, but nothing that persists changes
  kEvaluate,  // running statistics, no dropout
  // As kProbe, but layers whose first values depend on data write them. They run once, on the first
  // batch, as a graph of their own: a step would need a second update of the same leaf, and would
  // go on paying for the statistics.
  kInitialize,
};

// A scalar that a layer wants looked at while it trains: the log takes the largest of those of one
// name, and training warns of the first above its limit.
struct Watch {
  std::string name;  // of the quantity: "powernorm.nu_max"
  Value value;       // ()
  double limit = std::numeric_limits<double>::infinity();
  std::string beyond = {};  // what a value above the limit means
  std::string layer = {};   // "fc1/norm"; Net::watch fills it in
};

struct Net {
  Graph& graph;
  Mode mode = Mode::kTrain;
  std::uint64_t seed = 0;
  // What random numbers depend on beside the seed, both () i32: the number of the update, and the
  // number of the batch's first row among the rows of the whole update.
  Value tick = {}, first_row = {};
  DType dtype = DType::kF32;
  std::vector<Watch>* watches = nullptr;  // takes what is watched; null: nobody looks

  // Throws Error{kUsage} unless both are there for `layer` to draw by.
  RandomKey random_key(std::string_view layer) const {
    check(tick.valid() && first_row.valid(), ErrorKind::kUsage,
          "{}: expected a tick and a first_row to draw random numbers by", layer);
    return {tick, first_row};
  }
  // A parameter of the layer being built, "<scope>/<name>". What has one axis or none is a gain or
  // a bias, and does not decay.
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer) const {
    return parameter(name, shape, std::move(initializer), {.decays = shape.rank() > 1});
  }
  Value parameter(const std::string& name, const Shape& shape, Initializer initializer,
                  const ParameterFacts& facts) const {
    return graph.parameter(graph.prefix() + name, {dtype, shape}, std::move(initializer), facts);
  }
  bool training() const { return mode != Mode::kEvaluate; }
  // The new value of a running statistic, kept unless this is a probe.
  void update(Value leaf, Value next) const {
    if (mode == Mode::kTrain) graph.mark_update(leaf, next);
  }
  // The same of every state that a backward changes: of Gradients::states.
  void update(std::span<const Update> states) const {
    for (const Update& state : states) update(state.leaf, state.next);
  }
  void watch(Watch w) const {
    if (!watches) return;
    w.layer = graph.prefix().substr(0, graph.prefix().rfind('/'));
    watches->push_back(std::move(w));
  }
};

}  // namespace keel::nn
