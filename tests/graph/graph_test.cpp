// Building graphs: names, scopes, leaves, outputs, updates and printing.
#include "src/graph/graph.h"

#include <doctest/doctest.h>

#include "src/graph/next_name.h"
#include "src/graph/print.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kMatrix{DType::kF32, {2, 3}};

TEST_CASE("graph: nodes are named after their op, numbered when taken, and prefixed by scopes") {
  Graph g;
  const Value x = g.input("x", kMatrix);
  CHECK(g.node(ops::relu(g, x)).name == "relu");
  CHECK(g.node(ops::relu(g, x)).name == "relu.2");
  {
    const auto outer = g.scope("block");
    CHECK(g.node(ops::relu(g, x)).name == "block/relu");
    const auto inner = g.scope("fc");
    CHECK(g.prefix() == "block/fc/");
    CHECK(g.node(ops::relu(g, x)).name == "block/fc/relu");
    const NextName name(g, "act");
    CHECK(g.node(ops::relu(g, x)).name == "block/fc/act");
    CHECK(g.node(ops::relu(g, x)).name == "block/fc/relu.2");
  }
  CHECK(g.prefix() == "");
  CHECK(g.node(g.constant(1.0)).name == "constant");
  CHECK(g.node(g.constant(1.0)).name == "constant.2");
}

TEST_CASE("graph: numbered names stay unique beside names that look like them") {
  Graph g;
  const Value x = g.input("relu.2", kMatrix);
  const auto name = [&] { return g.node(ops::relu(g, x)).name; };
  CHECK(name() == "relu");
  CHECK(name() == "relu.3");  // relu.2 is a leaf
  {
    const NextName next(g, "relu.5");
    CHECK(name() == "relu.5");
    CHECK(name() == "relu.4");
  }
  CHECK(name() == "relu.6");
  {
    const NextName next(g, "relu.4");
    CHECK(name() == "relu.4.2");
  }
  // A name that is only asked for is not taken.
  CHECK(g.unique_name("relu") == "relu.7");
  CHECK(g.unique_name("relu") == "relu.7");
  const Graph copy = g;
  ops::relu(g, x);
  CHECK(Graph(copy).unique_name("relu") == "relu.7");
}

TEST_CASE("graph: a name for the next node is forgotten if no node takes it") {
  Graph g;
  const Value x = g.input("x", kMatrix), missing{.node = 7};
  const auto refused = [&](const std::function<void()>& action) {
    const NextName name(g, "named");
    CHECK_THROWS_AS(action(), Error);
  };
  refused([&] { ops::relu(g, missing); });  // before a type is inferred
  refused([&] { ops::matmul(g, x, x); });   // by the op's own rule
  refused([] { fail(ErrorKind::kUsage, "before any op"); });
  CHECK(g.node(ops::relu(g, x)).name == "relu");
  const NextName name(g, "named");
  CHECK_THROWS_AS(ops::relu(g, missing), Error);
  CHECK(g.node(ops::relu(g, x)).name == "relu.2");
}

TEST_CASE("graph: leaves keep their names, kinds and values") {
  Graph g;
  const Value x = g.input("x", kMatrix), p = g.parameter("p", kMatrix, {}),
              s = g.state("s", {DType::kI32, {}}, {}), c = g.constant(2.5, DType::kF64);
  CHECK(g.node(x).kind == NodeKind::kInput);
  CHECK(g.node(p).kind == NodeKind::kParameter);
  CHECK(g.node(s).kind == NodeKind::kState);
  CHECK(g.node(c).constant->at(0) == 2.5);
  CHECK(g.type(c) == TensorType{DType::kF64, {}});
  CHECK(g.find_leaf("p") == p);
  CHECK_FALSE(g.find_leaf("q").valid());
  ops::relu(g, x);
  CHECK_FALSE(g.find_leaf("relu").valid());
  check_refused([&] { g.input("p", kMatrix); }, "graph: the name 'p' is taken");
  const Value q = g.parameter("a", kMatrix, {});
  CHECK(g.leaves(NodeKind::kParameter) == std::vector{p, q});  // in order, not by name
  CHECK(g.leaves(NodeKind::kInput) == std::vector{x});
  CHECK(Graph().leaves(NodeKind::kState).empty());
}

TEST_CASE("graph: a parameter keeps its facts, in copies of its node too") {
  Graph g, copy;
  const Value plain = g.parameter("plain", kMatrix, {});
  const Value own =
      g.parameter("own", kMatrix, {}, {.decays = false, .trains = false, .lr_scale = 3});
  CHECK((g.node(plain).facts.decays && g.node(plain).facts.trains));
  CHECK(g.node(plain).facts.lr_scale == 1);
  const ParameterFacts facts = copy.node(copy.append(g.node(own), {})).facts;
  CHECK_FALSE((facts.decays || facts.trains));
  CHECK(facts.lr_scale == 3);
}

TEST_CASE("graph: an op that does not fit is refused with op and node, and leaves no node") {
  Graph g;
  const Value x = g.input("x", kMatrix);
  const int before = g.size();
  const auto scope = g.scope("fc1");
  check_refused([&] { ops::matmul(g, x, x); }, "[matmul] inner size of b: expected 3, got (2, 3)",
                "(node fc1/matmul)");
  CHECK(g.size() == before);
  CHECK(g.node(ops::matmul(g, x, x, {.transpose_b = true})).name == "fc1/matmul");
  check_refused([&] { ops::relu(g, Value{99, 0}); }, "[relu] an input is not of this graph");
}

TEST_CASE("graph: several outputs and absent inputs") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {1, 1, 4, 4}});
  const Value y = ops::max_pool2d(g, x, 2, 2);
  CHECK(g.type(y.at(1)) == TensorType{DType::kU8, {1, 1, 2, 2}});
  CHECK_FALSE(Value{}.valid());
  CHECK(y.at(1).node == y.node);
}

TEST_CASE("graph: updates join a parameter or state to a value of its type, once") {
  Graph g;
  const Value x = g.input("x", kMatrix), p = g.parameter("p", kMatrix, {});
  const Value next = ops::add(g, p, x), other = ops::cast(g, p, DType::kF64);
  check_refused([&] { g.mark_update(x, next); },
                "update of x: expected a parameter, state or carry");
  check_refused([&] { g.mark_update(p, other); }, "update of p: expected f32(2, 3), got f64(2, 3)");
  CHECK_FALSE(g.next_of(p).valid());
  g.mark_update(p, next);
  CHECK(g.next_of(p) == next);
  check_refused([&] { g.mark_update(p, next); }, "update of p: it is updated twice");
  CHECK(g.updates().size() == 1);
}

TEST_CASE("graph: an update that is marked can be replaced") {
  Graph g;
  const Value p = g.parameter("p", kMatrix, {}), q = g.parameter("q", kMatrix, {});
  const Value next = ops::neg(g, p), other = ops::cast(g, p, DType::kF64);
  check_refused([&] { g.replace_update(p, next); }, "update of p: expected one to replace");
  g.mark_update(p, q);
  g.mark_update(q, p);
  g.replace_update(p, next);
  CHECK(g.next_of(p) == next);
  CHECK(g.updates().size() == 2);
  CHECK(g.updates()[0].next == next);
  CHECK(g.next_of(q) == p);
  check_refused([&] { g.replace_update(p, other); }, "update of p: expected f32(2, 3), got f64");
}

TEST_CASE("graph: printing shows every node, attribute, output and update") {
  Graph g;
  const Value x = g.input("x", kMatrix), w = g.parameter("w", {DType::kF32, {3, 3}}, {});
  const auto scope = g.scope("fc1");
  const Value y = ops::scale(g, ops::matmul(g, x, w), 2);
  const Value pooled = ops::max_pool2d(g, g.constant(Tensor(DType::kF32, {1, 1, 2, 2})), 2, 2);
  g.mark_output("y", y);
  g.mark_output("place", pooled.at(1));
  g.mark_update(w, ops::neg(g, w));
  CHECK(print(g) ==
        "%0 x = input() : f32(2, 3)\n"
        "%1 w = parameter() : f32(3, 3)\n"
        "%2 fc1/matmul = matmul(%0, %1, -) {transpose_a=false transpose_b=false activation=none "
        "packed_columns=0} "
        ": f32(2, 3)\n"
        "%3 fc1/scale = scale(%2) {factor=2 offset=0} : f32(2, 3)\n"
        "%4 fc1/constant = constant() : f32(1, 1, 2, 2)\n"
        "%5 fc1/max_pool2d = max_pool2d(%4) {window=2 stride=2 "
        "channels_last=false} : f32(1, 1, 1, 1), u8(1, 1, 1, 1)\n"
        "%6 fc1/neg = neg(%1) : f32(3, 3)\n"
        "output y = %3\n"
        "output place = %5:1\n"
        "update w <- %6\n");
}

}  // namespace
}  // namespace keel::test
