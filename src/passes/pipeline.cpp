#include "src/passes/pipeline.h"

#include <string_view>
#include <vector>

#include "src/graph/verify.h"

namespace keel {
namespace {

struct Pass {
  std::string_view name;
  std::function<Graph(const Graph&)> run;
};

std::vector<Pass> passes_of(const PassOptions& options) {
  std::vector<Pass> passes{
      {"fold_constants", fold_constants}, {"merge_matmuls", merge_matmuls}, {"fuse", fuse}};
  if (options.loss_steps) {
    passes.push_back({"fuse_loss_backward",
                      [&](const Graph& g) { return fuse_loss_backward(g, options.loss_steps); }});
  }
  if (options.panels) {
    passes.push_back(
        {"pack_weights", [&](const Graph& g) { return pack_weights(g, options.panels); }});
  }
  if (options.channels_last) passes.push_back({"to_channels_last", to_channels_last});
  if (options.narrow) {
    passes.push_back({"fuse_casts", [&](const Graph& g) { return fuse_casts(g, options.narrow); }});
  }
  return passes;
}

}  // namespace

Graph run_passes(const Graph& graph, const PassOptions& options) {
  verify(graph, "building");
  const std::vector<Pass> passes = passes_of(options);
  Graph current;
  for (const Pass& pass : passes) {
    const bool is_first = &pass == &passes.front(), is_last = &pass == &passes.back();
    current = pass.run(is_first ? graph : current);
    if (options.verify_each || is_last) verify(current, pass.name);
  }
  return current;
}

}  // namespace keel
