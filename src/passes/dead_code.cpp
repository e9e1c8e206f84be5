// Dead code elimination.
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {

Graph remove_dead_code(const Graph& graph) {
  Rewriter rewriter(graph);
  return rewriter.run([&](int i) { rewriter.copy(i); });
}

}  // namespace keel
