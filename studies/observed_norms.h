// The norms of a network as its graph has them: where they stand, what they are given and what they
// give back.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/program.h"

namespace keel::study {

struct ObservedNorm {
  std::string name;  // the norm's: "block1/norm"
  int forward = -1;  // nodes of the graph; backward is -1 without a gradient
  int backward = -1;
};

// Every node of that op, in the order of the graph.
std::vector<ObservedNorm> observed_norms(const Graph& graph, const OpInfo& op);

// Marks a value as the output "<site>/<what>".
void mark(Graph& graph, const ObservedNorm& site, const std::string& what, Value value);
// The value of that output after a run, as float64.
Tensor fetch(const Program& program, const ObservedNorm& site, const std::string& what);

}  // namespace keel::study
