// A plan of a walk: which nodes of a step it runs, and which of them it compares.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/graph/graph.h"
#include "src/graph/tables.h"

namespace keel::compare {

// Whether a node, or a leaf that takes a new value, has the path `only` or a path below it.
bool has_called(const Graph& graph, const std::string& only);

struct WalkChoice {
  std::string only;    // a path; empty: all
  bool views = false;  // views are compared too: another program may have got one wrong
};

class WalkPlan {
 public:
  // Compares all nodes, or those with the path `only` or a path below it: nodes, and updates of
  // leaves with such a name. The nodes that these depend on run too, in this step or, as updates,
  // in an earlier one. Throws Error{kUsage} when nothing of `subject` has that path.
  WalkPlan(const Graph& graph, const WalkChoice& choice, const std::string& subject);

  bool is_compared(int node) const { return compared_[node]; }
  const PerNode<bool>& needed() const { return needed_; }
  // The updates whose new value is an output of the node.
  std::span<const Update> updates_of(int node) const;

 private:
  void choose(const Graph& graph, int node, const WalkChoice& choice);

  PerNode<bool> compared_, needed_;
  std::map<int, std::vector<Update>> updates_;  // by the node of the new value
};

}  // namespace keel::compare
