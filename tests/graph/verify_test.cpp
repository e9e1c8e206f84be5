// The grammar of graphs: each rule catches a graph that breaks it. Graph::append takes nodes as
// they are, which is how a faulty pass would break one.
#include "src/graph/verify.h"

#include <doctest/doctest.h>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kPair{DType::kF32, {2}};

// x -> relu, and a parameter p that takes relu's value.
struct Sound {
  Graph g;
  Value x = g.input("x", kPair), p = g.parameter("p", kPair, {}), y = ops::relu(g, x);

  // A copy of the relu node under another name, to be broken.
  Node relu() const {
    Node node = g.node(y);
    node.name = "broken";
    return node;
  }
  void check_caught(std::string_view text) {
    check_refused([&] { verify(g, "a test"); }, "graph after a test: ", text, ErrorKind::kInternal);
  }
};

TEST_CASE("verify: a sound graph passes") {
  Sound s;
  s.g.mark_output("y", s.y);
  s.g.mark_update(s.p, s.y);
  CHECK_NOTHROW(verify(s.g, "a test"));
}

TEST_CASE("verify: names are unique") {
  Sound s;
  Node node = s.relu();
  node.name = "relu";
  s.g.append(node, {s.x});
  s.check_caught("relu: the name is used twice");
}

TEST_CASE("verify: inputs come from earlier nodes and existing ports") {
  Sound later;
  later.g.append(later.relu(), {Value{3, 0}});
  later.check_caught("broken: reads node 3 which comes later");
  Sound port;
  port.g.append(port.relu(), {Value{0, 1}});
  port.check_caught("broken: expected a port below 1, got 1");
}

TEST_CASE("verify: recorded types are the inferred ones, and inference still holds") {
  Sound types;
  Node node = types.relu();
  node.outputs[0].shape = {3};
  types.g.append(node, {types.x});
  types.check_caught("broken: recorded types differ from inferred ones");
  Sound arity;
  arity.g.append(arity.relu(), {arity.x, arity.x});
  arity.check_caught("[relu] operands: expected 1, got 2");
}

TEST_CASE("verify: an op node has an op") {
  Sound s;
  Node node = s.relu();
  node.op = nullptr;
  s.g.append(node, {s.x});
  s.check_caught("broken: a node without an op");
}

TEST_CASE("verify: outputs exist and updates come from ops") {
  Sound output;
  output.g.mark_output("y", output.y.at(2));
  output.check_caught("output y: expected a port below 1, got 2");
  Sound update;
  update.g.mark_update(update.p, update.x);
  update.check_caught("update of p: expected the result of an op");
}

}  // namespace
}  // namespace keel::test
