// A comparison as a whole: which nodes differ by more than rounding, which first, and which backend
// is nearest to the judge.
#pragma once

#include <map>

#include "frontend/compare/step_walk.h"

namespace keel::compare {

// The worst report of one node on one backend, over all steps.
struct NodeSummary {
  NodeReport worst;
  std::int64_t steps = 0, diverged = 0;
};

struct Comparison {
  std::string subject;
  std::vector<NodeSummary> nodes;               // in the order of the walk
  std::optional<NodeReport> first;              // divergence, in the order of the walk
  std::map<std::string, std::int64_t> nearest;  // by backend: nodes on which its nmse is the least

  bool agrees() const { return !first; }
  std::int64_t refused() const;
  std::int64_t diverged() const;  // nodes
  // The nodes, those nearest to their bounds or beyond them first.
  std::vector<const NodeSummary*> ranked() const;
};

struct CompareOptions {
  WalkOptions walk;
  std::int64_t steps = 1;
  NodeSink sink = {};  // sees every report besides
};

// Walks through some steps of a subject. Throws what StepWalk throws.
Comparison compare(Backend& judge, const std::vector<Backend*>& backends, Subject& subject,
                   const CompareOptions& options);

// The errors of a node as the cells of a table, and what they are called.
std::vector<std::string> summary_heading();
std::vector<std::string> summary_row(const NodeSummary& summary);

}  // namespace keel::compare
