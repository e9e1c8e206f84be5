// States that layers carry from batch to batch: rows that begin, modes, gradients, refusals.
#include "frontend/nn/carry.h"

#include <limits>

#include "frontend/nn/init.h"
#include "src/ops/matmul.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

// h <- y = carry + x of the shape (3, 2).
Graph carrying(Mode mode) {
  Graph g;
  Net net{.graph = g, .mode = mode};
  const Value x = g.input("x", {DType::kF32, {3, 2}}),
              begins = g.input("begins", {DType::kU8, {3}});
  const auto scope = g.scope("cell");
  const Carry carry(net, "h", {3, 2}, begins);
  const Value y = ops::add(g, carry.value(), x);
  g.mark_output("y", y);
  carry.leave(y);
  return g;
}

Tensor step(Program& program, float x, std::initializer_list<std::uint8_t> begins) {
  program.feed("x", Tensor::of<float>({3, 2}, {x, x, x, x, x, x}));
  program.feed("begins", Tensor::of<std::uint8_t>({3}, begins));
  program.run();
  return program.fetch("y");
}

TEST_CASE("carry: rows that begin are zero whatever they were, the others go on") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Program program(backend, variables, carrying(Mode::kTrain));
  step(program, 1, {1, 1, 1});
  test::check_close(step(program, 2, {0, 1, 0}), test::f64({3, 2}, {3, 3, 2, 2, 3, 3}), 0);
  step(program, std::numeric_limits<float>::infinity(), {0, 0, 0});
  const Tensor y = step(program, 1, {1, 0, 1});
  CHECK(y.at(0) == 1);
  CHECK(std::isinf(y.at(2)));
  CHECK(y.at(5) == 1);
}

TEST_CASE("carry: training and evaluation leave a value, a probe and first values leave none") {
  reference::ReferenceBackend backend;
  for (const auto& [mode, second] : {std::pair{Mode::kTrain, 3.0},
                                     {Mode::kEvaluate, 3.0},
                                     {Mode::kProbe, 2.0},
                                     {Mode::kDataDependentInit, 2.0}}) {
    Variables variables(backend, 1);
    Program program(backend, variables, carrying(mode));
    step(program, 1, {0, 0, 0});
    CHECK(step(program, 2, {0, 0, 0}).at(0) == second);
  }
}

TEST_CASE("carry: it has its own name and kind, and no gradient flows into it") {
  Graph g;
  Net net{.graph = g};
  const Value begins = g.input("begins", {DType::kU8, {1}});
  const Value w = net.parameter("w", {2, 2}, ones());
  const Carry carry(net, "h", {1, 2}, begins);
  const Value h = ops::matmul(g, carry.value(), w);
  carry.leave(h);
  const Value leaf = g.find_leaf("h");
  CHECK(g.node(leaf).kind == NodeKind::kCarry);
  CHECK(g.leaves(NodeKind::kState).empty());
  const std::vector<Value> gradients = gradient(g, ops::sum(g, h), {{w}});
  CHECK(gradients[0].valid());
  CHECK(g.next_of(leaf) == h);
}

TEST_CASE("carry: begins of other rows or another type are refused") {
  Graph g;
  Net net{.graph = g};
  const Value two = g.input("two", {DType::kU8, {2}}), real = g.input("real", {DType::kF32, {3}});
  const auto scope = g.scope("cell");
  for (const auto& [begins, got] : {std::pair{two, "got u8(2)"}, {real, "got f32(3)"}}) {
    test::check_refused(
        [&] {
          Carry(net, "h", {3, 2}, begins);
        },
        "carry cell/h: begins: expected u8(3)", got);
  }
}

}  // namespace
}  // namespace keel::nn
