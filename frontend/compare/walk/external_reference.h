// Compares the arrays that another program gave for the nodes of a walk.
#pragma once

#include "frontend/compare/walk/node_reference.h"
#include "frontend/compare/walk/step_walk.h"

namespace keel::compare {

class ExternalReference {
 public:
  // Both have to outlive it.
  ExternalReference(Backend& reference, ExternalValues& values)
      : reference_(reference), values_(values) {}

  // Begins a walk over the graph. Throws Error{kBadInput} for an array that no node has.
  void begin(const Graph& graph) { values_.expect_names(graph); }

  // A node, as compared on the walk.
  struct Site {
    const Graph& graph;
    int node = 0;
    const BackendTrace& truth;  // the reference's values before the node
    const NodeResult& node_result;
  };
  // Takes in the arrays given for a node's outputs. If they are to be compared, completes `report`
  // and hands it to the sink: they are compared by the reference's result for the program's own
  // inputs or, if one of these is missing, only their distance from the reference's own value is
  // measured.
  void take(const Site& site, bool is_compared, NodeReport report, const NodeSink& sink);

 private:
  void measure(const Site& site, const NodeResult& own, NodeReport report, const NodeSink& sink);

  Backend& reference_;
  ExternalValues& values_;
};

}  // namespace keel::compare
