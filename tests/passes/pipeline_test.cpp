// The passes in a row.
#include "src/passes/pipeline.h"

#include <doctest/doctest.h>

#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kTable{DType::kF32, {2, 3}};

TEST_CASE("run_passes: verifies the graph it is given") {
  for (const bool verify_each : {false, true}) {
    Graph g;
    const Value x = g.input("x", kTable);
    g.mark_output("y", x.at(3));
    check_refused([&] { run_passes(g, {.verify_each = verify_each}); },
                  "graph after building: output y", "", ErrorKind::kInternal);
  }
}

TEST_CASE("run_passes: what folding leaves unread does not keep others from being fused") {
  Graph g;
  const Value x = g.input("x", kTable);
  const Value inner = ops::scale(g, ops::exp(g, x), 2);
  g.mark_output("y", ops::scale(g, inner, 3));
  const Graph after = run_passes(g);
  REQUIRE(after.size() == 2);
  CHECK(after.node(1).op == &kFusedElementwise);
  CHECK(after.node(1).attrs.text().ends_with("r1=exp(r0) r2=scale(r1,factor=6 offset=0)"));
}

TEST_CASE("run_passes: channels last only where it is asked for") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {1, 2, 4, 4}});
  const Value w = g.parameter("w", {DType::kF32, {2, 2, 3, 3}}, {});
  g.mark_output("y", ops::conv2d(g, x, w));
  const auto turned = [&](const PassOptions& options) {
    const Graph after = run_passes(g, options);
    for (int i = 0; i < after.size(); ++i) {
      if (after.node(i).op == &kConv2d) return after.node(i).attrs.as<ConvAttrs>().channels_last;
    }
    return false;
  };
  CHECK(turned({.channels_last = true}));
  CHECK_FALSE(turned({}));
}

TEST_CASE("run_passes: an update takes the result of an op, also where its value is a leaf") {
  Graph g;
  const Value x = g.input("x", kTable), s = g.state("s", kTable, {});
  g.mark_update(s, ops::scale(g, x, 1));  // folded away: x itself is left
  const Graph after = run_passes(g);
  CHECK(after.node(after.updates()[0].next).kind == NodeKind::kOp);
}

}  // namespace
}  // namespace keel::test
