#include "src/passes/pipeline.h"

#include "src/graph/verify.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

Graph copy_of(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int i = 0; i < graph.size(); ++i) rewriter.copy(i);
  return rewriter.finish();
}

constexpr Pass kPasses[] = {{"remove_dead_code", remove_dead_code},
                            {"fold_constants", fold_constants},
                            {"fuse", fuse},
                            {"remove_dead_code again", remove_dead_code}};

}  // namespace

std::span<const Pass> default_passes() { return kPasses; }

Graph run_passes(const Graph& graph) {
  verify(graph, "building");
  Graph current = copy_of(graph);
  for (const Pass& pass : kPasses) {
    current = pass.run(current);
    verify(current, pass.name);
  }
  return current;
}

}  // namespace keel
