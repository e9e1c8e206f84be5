// The benchmark of large graphs: its graph, and that every stage is timed.
#include "bench/graph_scale.h"

#include <doctest/doctest.h>

#include "src/graph/verify.h"
#include "src/ops/matmul.h"
#include "src/passes/pipeline.h"

namespace keel::bench {
namespace {

TEST_CASE("graph scale: the recurrent graph is sound, and its weights' gradients are merged") {
  const Graph g = recurrent_step(6);
  CHECK_NOTHROW(verify(g, "recurrent_step"));
  CHECK(g.updates().size() == 3 * g.leaves(NodeKind::kParameter).size());
  const auto products = [](const Graph& graph) {
    int count = 0;
    for (int i = 0; i < graph.size(); ++i) count += graph.node(i).op == &kMatmul;
    return count;
  };
  // 3 layers with 2 weights, over 6 steps; the gradient of x in all layers but the first, and of h
  // in all steps but the first.
  CHECK(products(g) == 36 + 12 + 15 + 36);
  CHECK(products(run_passes(g)) == 36 + 12 + 15 + 6);
}

TEST_CASE("graph scale: graphs have the size that is asked for, and stages take time") {
  for (int nodes : {1000, 3000}) {
    const GraphScale scale = bench_graph(nodes, 1);
    CAPTURE(nodes);
    CHECK(scale.nodes > nodes * 9 / 10);
    CHECK(scale.nodes < nodes * 11 / 10);
    CHECK(scale.kernels > 0);
    CHECK(scale.kernels < scale.nodes);
    for (double seconds : {scale.build, scale.gradient, scale.passes, scale.plan, scale.bind}) {
      CHECK(seconds >= 0);
    }
    CHECK(scale.total() > 0);
  }
}

}  // namespace
}  // namespace keel::bench
