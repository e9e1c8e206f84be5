// Nodes before a collective are computed again after the loss, and only values that cross the
// collective are kept for that.
#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/ops/shard_parts.h"
#include "src/passes/pipeline.h"
#include "tests/passes/fed_graph.h"

namespace keel::test {
namespace {

// Two parts before the loss, which meet by the sums of the columns of h; the second begins with it.
struct CollectiveGraph : FedGraph {
  CollectiveGraph() {
    const Value x = input({3, 4}), w = input({4, 5});
    const Value inner = ops::tanh(g, ops::matmul(g, x, w));
    const Value h = ops::mul(g, inner, inner);
    const Value all = ops::all_shards(g, ops::sum(g, h), 1);
    feeds["collective/0"] = Tensor(g.type(all));
    const Value y = ops::sigmoid(g, ops::mul(g, h, ops::sum(g, all)));
    const Value loss = ops::sum(g, y);
    g.mark_output("loss", loss);
    const std::vector<Value> wrt{w};
    const Value again = ops::all_shards(g, ops::sum(g, y), 1);
    feeds["collective/1"] = Tensor(g.type(again));
    const Value dw = differentiate(g, loss, wrt).of.front();
    g.mark_output("dw", ops::mul(g, dw, ops::add(g, again, ops::sum(g, all))));
  }
};

int nodes_called(const Graph& g, std::string_view end) {
  int count = 0;
  for (int i = 0; i < g.size(); ++i) count += g.node(i).name.ends_with(end);
  return count;
}

TEST_CASE("recompute: results stay the same, and what is inside a part is read in no later one") {
  const CollectiveGraph made;
  const Graph after = recompute(made.g, "loss");
  verify(after, "recompute");
  check_results(made.g, after, made.feeds,
                [](const Tensor& a, const Tensor& b) { check_close(a, b, 0); });
  const PerNode<int> part = parts_of(after);
  REQUIRE(part[after.size() - 1] == 2);
  // tanh and the product are computed twice, h is not.
  CHECK(nodes_called(after, "/again") == 2);
  for (int i = 0; i < after.size(); ++i) {
    for (const Value v : after.node(i).inputs) {
      const std::string name = v.valid() ? after.node(v).name : "";
      if (name == "tanh" || name == "matmul") CHECK(part[i] == part[v.node]);
    }
  }
}

// The third part computes again those values that the first leaves to the second and that need no
// product.
TEST_CASE("recompute: what is cheap is computed again in each part that reads it") {
  FedGraph made;
  Graph& g = made.g;
  const Value x = ops::matmul(g, made.input({3, 4}), made.input({4, 5}));
  const Value cheap = ops::sigmoid(g, x);
  const auto meet = [&](Value v) {
    const Value all = ops::all_shards(g, ops::sum(g, v), 1);
    made.feeds[g.node(all).name] = Tensor(g.type(all));
    return ops::sum(g, all);
  };
  const Value met = meet(cheap);
  g.mark_output("loss", ops::sum(g, ops::mul(g, ops::mul(g, cheap, x), met)));
  const Value met_again = meet(x);
  const Value once = ops::mul(g, cheap, met_again), twice = ops::mul(g, once, cheap);
  const Value met_last = meet(twice);
  g.mark_output("y", ops::mul(g, ops::mul(g, twice, cheap), met_last));
  const Value last = ops::add(g, cheap, x);
  g.mark_output("z", last);
  const Graph after = recompute(g, "loss");
  check_results(g, after, made.feeds,
                [](const Tensor& a, const Tensor& b) { check_close(a, b, 0); });
  const PerNode<int> part = parts_of(after);
  for (int i = 0; i < after.size(); ++i) {
    for (const Value v : after.node(i).inputs) {
      const bool is_cheap = v.valid() && after.node(v).name.starts_with("sigmoid");
      if (is_cheap && part[i] > 1) CHECK(part[i] == part[v.node]);
    }
  }
  CHECK(nodes_called(after, "/again") == 1);
  CHECK(nodes_called(after, "/again.2") == 1);
}

TEST_CASE("recompute: a graph without collectives stays as it is, and a loss must have the name") {
  FedGraph made;
  const Value x = made.input({3, 4});
  made.g.mark_output("loss", ops::sum(made.g, ops::tanh(made.g, x)));
  CHECK(recompute(made.g, "loss").size() == made.g.size());
  check_refused([&] { recompute(made.g, "cost"); }, "no output is called 'cost'");
}

}  // namespace
}  // namespace keel::test
