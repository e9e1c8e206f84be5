// Tables with an entry for each node or value.
#include "src/graph/tables.h"

#include <doctest/doctest.h>

#include "src/ops/elementwise.h"
#include "src/ops/pool2d.h"

namespace keel::test {
namespace {

TEST_CASE("tables: every value has an entry of its own, and the graph may grow afterwards") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {1, 1, 4, 4}});
  const Value y = ops::max_pool2d(g, x, 2, 2), z = ops::relu(g, y);
  PerValue<int> table(g, 7);
  ops::relu(g, z);
  int next = 0;
  for (Value v : {x, y, y.at(1), z}) {
    CHECK(table[v] == 7);
    table[v] = next++;
  }
  CHECK(table[x] == 0);
  CHECK(table[y] == 1);
  CHECK(table[y.at(1)] == 2);
  CHECK(table[z] == 3);
  CHECK(std::vector<int>(table.of(y.node).begin(), table.of(y.node).end()) == std::vector{1, 2});
  CHECK(table.of(z.node).size() == 1);
}

TEST_CASE("tables: a table of nodes keeps its size, flags too") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2}});
  PerNode<bool> seen(g);
  ops::relu(g, x);
  CHECK(seen.size() == 1);
  CHECK_FALSE(seen[x.node]);
  seen[x.node] = true;
  CHECK(seen[x.node]);
}

}  // namespace
}  // namespace keel::test
