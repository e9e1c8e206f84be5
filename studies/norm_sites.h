// The norms of a network as its graph has them: where they stand, what they are given and what they
// give back.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/program.h"

namespace keel::study {

struct NormSite {
  std::string name;  // the norm's: "block1/norm"
  int forward = -1;  // nodes of the graph; backward is -1 without a gradient
  int backward = -1;
};

// Every node of that op, in the order of the graph.
std::vector<NormSite> norm_sites(const Graph& graph, const OpInfo& op);

// Marks a value as the output "<site>/<what>".
void mark(Graph& graph, const NormSite& site, const std::string& what, Value value);
// The value of that output after a run, as float64.
Tensor fetch(const Program& program, const NormSite& site, const std::string& what);

}  // namespace keel::study
