#include "src/runtime/run_graph.h"

namespace keel {

Results run_graph(Backend& backend, const Graph& graph, const Feeds& feeds,
                  const RunGraphOptions& options) {
  Variables variables(backend, 1);
  Program program(backend, variables, graph, {.optimize = options.optimize, .guard = ""});
  for (const auto& [name, value] : feeds) program.feed(name, value);
  program.run();
  Results results;
  for (const NamedValue& output : graph.outputs()) {
    results[output.name] = program.fetch(output.name, options.stored);
  }
  return results;
}

}  // namespace keel
