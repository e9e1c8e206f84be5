#include "src/passes/pipeline.h"

#include "src/graph/verify.h"

namespace keel {
namespace {

constexpr Pass kPasses[] = {
    {"fold_constants", fold_constants}, {"merge_products", merge_products}, {"fuse", fuse}};

}  // namespace

std::span<const Pass> default_passes() { return kPasses; }

Graph run_passes(const Graph& graph, const PassOptions& options) {
  verify(graph, "building");
  std::vector<Pass> passes(std::begin(kPasses), std::end(kPasses));
  if (options.channels_last) passes.push_back({"to_channels_last", to_channels_last});
  Graph current;
  for (const Pass& pass : passes) {
    const bool is_first = &pass == &passes.front(), is_last = &pass == &passes.back();
    current = pass.run(is_first ? graph : current);
    if (options.verify_each || is_last) verify(current, pass.name);
  }
  return current;
}

}  // namespace keel
