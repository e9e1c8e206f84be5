// Losses that are computed together with their backward: which are, which are not, and that values
// stay.
#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "tests/passes/count.h"
#include "tests/passes/fed_graph.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

Graph joined(const Graph& g, bool chosen = true) {
  Graph result = fuse_loss_backward(g, [&](const Graph&, const Node&) { return chosen; });
  verify(result, "fuse_loss_backward");
  return result;
}

struct LossGraph : FedGraph {
  Value x = input({5, 3}), table = input({9, 3});

  Value labels() {
    const std::string name = fmt::format("labels{}", feeds.size());
    feeds[name] = Tensor::of<std::int32_t>({5}, {0, 8, 3, -1, 2});
    return g.input(name, {DType::kI32, {5}});
  }
  Value loss(Value of_labels) {
    return ops::linear_cross_entropy(g, {.x = x, .table = table, .labels = of_labels}).sum;
  }
  void differentiate(Value objective) {
    const std::vector<Value> d = gradient(g, objective, std::vector{x, table});
    g.mark_output("objective", objective);
    g.mark_output("dx", d[0]);
    g.mark_output("dtable", d[1]);
  }
  // Joins, and CHECKs that so many steps came about and that every output is the same.
  void check_steps(int expected) {
    const Graph after = joined(g);
    CHECK(count(after, kLinearCrossEntropyStep) == expected);
    CHECK(count(after, kLinearCrossEntropyBackward) ==
          count(g, kLinearCrossEntropyBackward) - expected);
    CHECK(count(after, kLinearCrossEntropy) == count(g, kLinearCrossEntropy) - expected);
    check_results(g, after, feeds,
                  [](const Tensor& before, const Tensor& got) { check_close(got, before, 0); });
  }
};

TEST_CASE("fuse_loss_backward: the mean over a number of words that the graph is given") {
  LossGraph d;
  const Value words = d.input({});
  d.differentiate(ops::div(d.g, d.loss(d.labels()), ops::add(d.g, ops::exp(d.g, words), words)));
  d.check_steps(1);
}

TEST_CASE("fuse_loss_backward: two losses of one table, whose gradients need the same number") {
  LossGraph d;
  const Value words = ops::exp(d.g, d.input({}));
  const Value sum = ops::add(d.g, d.loss(d.labels()), d.loss(d.labels()));
  d.differentiate(ops::div(d.g, sum, words));
  d.check_steps(2);
}

TEST_CASE("fuse_loss_backward: a gradient that depends on the loss stays after it") {
  LossGraph d;
  d.differentiate(ops::exp(d.g, ops::scale(d.g, d.loss(d.labels()), 0.01)));
  d.check_steps(0);
}

TEST_CASE("fuse_loss_backward: a loss without a backward, and one that the backend does not want") {
  LossGraph d;
  d.g.mark_output("loss", d.loss(d.labels()));
  d.check_steps(0);
  LossGraph unwanted;
  unwanted.differentiate(unwanted.loss(unwanted.labels()));
  CHECK(count(joined(unwanted.g, false), kLinearCrossEntropyStep) == 0);
  unwanted.check_steps(1);
}

TEST_CASE("fuse_loss_backward: a backward with other labels, or a reader of lse, keeps the pair") {
  LossGraph d;
  const Value loss = d.loss(d.labels()), lse = loss.at(LinearLossOutput::kLse), none;
  const Value one = d.g.constant(Tensor::of<double>({}, {1}));
  const Value other =
      d.g.add(kLinearCrossEntropyBackward, {d.x, d.table, none, none, none, d.labels(), lse, one},
              LinearLossAttrs{});
  d.g.mark_output("dx", other);
  d.check_steps(0);
  LossGraph read;
  const Value second = read.loss(read.labels());
  read.differentiate(second);
  read.g.mark_output("lse", second.at(LinearLossOutput::kLse));
  read.check_steps(0);
}

}  // namespace
}  // namespace keel::test
