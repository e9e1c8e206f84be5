// The subjects that backends are compared on: a training step of a model, a norm, an op, with all
// of its inputs. All of it is a pure function of the step's number.
#pragma once

#include <memory>
#include <string>

#include "src/runtime/run_graph.h"

namespace keel::compare {

// One step: the graph that every backend runs, and its inputs by name.
struct SubjectStep {
  const Graph* graph = nullptr;  // lives as long as the subject
  Feeds feeds;
};

class Subject {
 public:
  virtual ~Subject() = default;
  // Such as "mnist_cnn" or "norm batchnorm, images".
  virtual const std::string& name() const = 0;
  virtual SubjectStep at(std::int64_t step) = 0;
  // Values of parameters and states before the first step that replace those of their initializers.
  virtual const Feeds& first_values() const = 0;
  // The seed that keys the initializers.
  virtual std::uint64_t seed() const = 0;
};

// The value that a leaf starts with, in its declared type.
Tensor first_value(const Subject& subject, const Node& leaf);

// The graph after the passes that all backends have in common or, if `unfused`, the graph without
// nodes that nothing depends on.
Graph compared_graph(const Graph& graph, bool unfused);

}  // namespace keel::compare
