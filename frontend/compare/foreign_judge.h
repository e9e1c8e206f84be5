// Judges what another program gave for the nodes of a walk.
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

  // A node as the walk's judge has it.
  struct Site {
    const Graph& graph;
    int node = 0;
    const Lane& truth;  // the judge's values before the node
    const Judgement& judgement;
  };
  // Takes in what was given of a node's outputs. Where they are to be judged, completes `report`
  // and hands it to the sink: held to what the judge makes of the program's own inputs or, where
  // one of them is missing, at its distance from the judge's own value and not judged.
  void take(const Site& site, bool is_judged, NodeReport report, const NodeSink& sink);

 private:
  void measure(const Site& site, const Judgement& own, NodeReport report, const NodeSink& sink);

  Backend& judge_;
  ForeignValues& values_;
};

}  // namespace keel::compare
