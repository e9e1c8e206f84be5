// The result of a whole comparison: which nodes differ by more than rounding, which node is the
// first, and which backend is nearest to the judge.
#pragma once

#include <map>

#include "frontend/compare/step_walk.h"

namespace keel::compare {

// The worst report of one node on one backend, over all steps.
struct NodeSummary {
  NodeReport worst;
  std::int64_t steps = 0, diverged = 0;

  Verdict verdict() const { return diverged > 0 ? Verdict::kDiverges : worst.verdict(); }
};

struct Comparison {
  std::string subject;
  std::vector<NodeSummary> nodes;               // in the order of the walk
  std::optional<NodeReport> first;              // the first divergence, in the order of the walk
  std::map<std::string, std::int64_t> nearest;  // by backend: nodes where its nmse is the least

  // Rounding explains all that was found. complete() says whether everything was judged.
  bool agrees() const { return !first; }
  // Every node was judged, none was refused, and none is suspect.
  bool complete() const;
  std::int64_t count(Verdict verdict) const;  // nodes
  std::int64_t refused() const { return count(Verdict::kRefused); }
  std::int64_t diverged() const { return count(Verdict::kDiverges); }
  // The nodes, ranked: those nearest to their bounds, or beyond them, come first.
  std::vector<const NodeSummary*> ranked() const;
};

struct CompareOptions {
  WalkOptions walk;
  std::int64_t steps = 1;
  NodeSink sink = {};  // also gets every report
};

// Walks through some steps of a subject. Throws what StepWalk throws.
Comparison compare(Backend& judge, const std::vector<Backend*>& backends, Subject& subject,
                   const CompareOptions& options);

// The number of nodes, and the number for each verdict other than ok: "112 nodes: 1 diverges, 3
// unjudged".
std::string counts_text(const Comparison& comparison);
// Why a node's verdict is neither ok nor divergence, in a few words.
std::string reservation(const NodeSummary& summary);

// The errors of a node as cells of a table, and the headings of these cells.
std::vector<std::string> summary_heading();
std::vector<std::string> summary_row(const NodeSummary& summary);

}  // namespace keel::compare
