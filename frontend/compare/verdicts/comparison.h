// The result of a whole comparison: which nodes differ by more than rounding, which node is the
// first, and which backend is nearest to the reference.
#pragma once

#include <map>
#include <span>

#include "frontend/compare/walk/step_walk.h"

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

  // Rounding explains all that was found. complete() says whether everything was compared.
  bool agrees() const { return !first; }
  // Every node was compared, none was refused, and none is suspect.
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
Comparison compare(Backend& reference, const std::vector<Backend*>& backends, Subject& subject,
                   const CompareOptions& options);

// "all 575 nodes match float64 within rounding error; 4 are too small to tell: a, b, c, d": the
// verdict on all nodes of all comparisons, with the names of up to `most_names` nodes of each kind.
std::string verdict_text(std::span<const Comparison> comparisons, std::size_t most_names = 12);
// Why a node's verdict is neither ok nor divergence, in a few words.
std::string reservation(const NodeSummary& summary);

// The errors of nodes as a table with a heading: those that decide the verdict, or all of them.
// Columns without a number are left out.
enum class ErrorColumns { kVerdict, kAll };
std::vector<std::vector<std::string>> summary_rows(std::span<const NodeSummary* const> nodes,
                                                   ErrorColumns columns);
// Explains the columns in a few sentences.
std::string summary_legend(ErrorColumns columns);

}  // namespace keel::compare
