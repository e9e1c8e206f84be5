// A name for the next node of a graph that is forgotten if no node takes it.
#pragma once

#include <string>
#include <utility>

#include "src/graph/graph.h"

namespace keel {

// While it lives, the next add() names its node so (Graph::name_next). An op may throw, or return a
// value that exists: then the name goes with the NextName.
class NextName {
 public:
  NextName(Graph& graph, std::string name) : graph_(graph) { graph.name_next(std::move(name)); }
  ~NextName() { graph_.name_next(""); }
  NextName(const NextName&) = delete;
  NextName& operator=(const NextName&) = delete;

 private:
  Graph& graph_;
};

}  // namespace keel
