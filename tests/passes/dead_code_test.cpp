// Dead code elimination.
#include <doctest/doctest.h>

#include "src/graph/print.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/pool2d.h"
#include "src/passes/pipeline.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kTwo{DType::kF32, {2}};

TEST_CASE("remove_dead_code: keeps leaves and what outputs and updates need, in order") {
  Graph g;
  const Value x = g.input("x", kTwo), p = g.parameter("p", kTwo, {});
  g.input("never read", kTwo);
  const Value unused = ops::exp(g, x);
  ops::add(g, unused, g.constant(1.0));
  const Value y = ops::relu(g, x), next = ops::mul(g, p, g.constant(2.0));
  g.mark_output("y", y);
  g.mark_update(p, next);
  CHECK(print(remove_dead_code(g)) ==
        "%0 x = input() : f32(2)\n"
        "%1 p = parameter() : f32(2)\n"
        "%2 never read = input() : f32(2)\n"
        "%3 relu = relu(%0) : f32(2)\n"
        "%4 constant.2 = constant() : f32()\n"
        "%5 mul = mul(%1, %4) : f32(2)\n"
        "output y = %3\n"
        "update p <- %5\n");
}

TEST_CASE("remove_dead_code: one output in use keeps the whole node") {
  Graph g;
  const Value y = ops::max_pool2d(g, g.input("x", {DType::kF32, {1, 1, 2, 2}}), 2, 2);
  g.mark_output("place", y.at(1));
  const Graph swept = remove_dead_code(g);
  CHECK(swept.size() == 2);
  CHECK(swept.outputs()[0].value == Value{1, 1});
  CHECK_NOTHROW(verify(swept, "remove_dead_code"));
}

}  // namespace
}  // namespace keel::test
