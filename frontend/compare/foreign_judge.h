// Judges the arrays that another program gave for the nodes of a walk.
#pragma once

#include "frontend/compare/node_judge.h"
#include "frontend/compare/step_walk.h"

namespace keel::compare {

class ForeignJudge {
 public:
  // Both have to outlive it.
  ForeignJudge(Backend& judge, ForeignValues& values) : judge_(judge), values_(values) {}

  // Begins a walk over the graph. Throws Error{kBadInput} for an array that no node has.
  void begin(const Graph& graph) { values_.expect_names(graph); }

  // A node, as judged on the walk.
  struct Site {
    const Graph& graph;
    int node = 0;
    const Lane& truth;  // the judge's values before the node
    const Judgement& judgement;
  };
  // Takes in the arrays given for a node's outputs. If they are to be judged, completes `report`
  // and hands it to the sink: they are judged by the judge's result for the program's own inputs
  // or, if one of these is missing, only their distance from the judge's own value is measured.
  void take(const Site& site, bool is_judged, NodeReport report, const NodeSink& sink);

 private:
  void measure(const Site& site, const Judgement& own, NodeReport report, const NodeSink& sink);

  Backend& judge_;
  ForeignValues& values_;
};

}  // namespace keel::compare
