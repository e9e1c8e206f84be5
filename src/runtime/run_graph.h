// Running a graph once: values in, values out.
#pragma once

#include <map>
#include <string>

#include "src/runtime/program.h"

namespace keel {

using Feeds = std::map<std::string, Tensor>;
using Results = std::map<std::string, Tensor>;

struct RunGraphOptions {
  bool optimize = false;  // run the passes first
  bool stored = true;     // results in the backend's storage type, else in their declared types
};

// Compiles the graph, feeds every input, runs it once and returns every output by its name.
Results run_graph(Backend& backend, const Graph& graph, const Feeds& feeds,
                  const RunGraphOptions& options = {});

}  // namespace keel
