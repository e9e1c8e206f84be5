// The memory of norms: what a backward takes beside its outputs.
#include <doctest/doctest.h>

#include "backends/onednn/backend.h"
#include "bench/norm_programs.h"
#include "frontend/nn/norm.h"
#include "src/passes/memory_plan.h"

namespace keel::test {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

std::int64_t output_bytes(const Node& node) {
  std::int64_t bytes = 0;
  for (const TensorType& type : node.outputs) bytes += type.bytes();
  return bytes;
}

// The tensors that a program of the norm must hold: inputs, all outputs of its forward, and the
// gradients.
std::int64_t needed_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind == NodeKind::kInput || bench::is_norm_forward(node)) bytes += output_bytes(node);
  }
  for (const NamedValue& output : graph.outputs()) {
    if (output.name.starts_with("gradient")) bytes += graph.type(output.value).bytes();
  }
  return bytes;
}

void check_memory(Backend& backend, const Graph& graph) {
  std::vector<std::int64_t> workspaces;
  int backwards = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const bool runs = node.kind == NodeKind::kOp && !is_view(node);
    workspaces.push_back(runs ? backend.prepare({graph, node}).workspace : 0);
    if (!bench::is_norm_backward(node)) continue;
    CHECK(workspaces.back() <= kMegabyte);
    ++backwards;
  }
  CHECK(backwards > 0);
  const MemoryPlan plan = plan_memory(graph, {.workspaces = workspaces});
  CHECK(plan.arena_bytes <= needed_bytes(graph) + kMegabyte);
}

}  // namespace

TEST_CASE("onednn norms: a backward takes at most 1 MB beside its outputs") {
  onednn::OnednnBackend backend(2);
  std::vector<std::string> norms{"groupnorm{groups=8}", "groupscaling{groups=8}"};
  for (const nn::NormFacts& facts : nn::norm_facts()) norms.push_back(facts.any_width());
  for (const std::string& norm : norms) {
    for (const Shape& shape : {Shape{32768, 512}, Shape{4096, 16384}, Shape{32, 64, 56, 56}}) {
      const bool image = shape.rank() == 4;
      if (norm == "none" || (norm == "instancenorm" && !image)) continue;
      CAPTURE(norm);
      CAPTURE(shape.text());
      check_memory(backend, bench::norm_graph(nn::Norm::parse(norm), shape));
    }
  }
}

}  // namespace keel::test
