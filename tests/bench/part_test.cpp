// A part of a graph by itself: which nodes it has, and that they compute what they do in the whole.
#include "bench/part.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "src/graph/verify.h"
#include "src/passes/pipeline.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::bench {
namespace {

const std::vector<std::int64_t> kRows{0, 1, 2, 3, 4, 5, 6, 7};

bool is_product(const Node& node) { return node.op->name == "matmul"; }
bool is_update(const Node& node) { return node.op->name == "adam_step"; }
bool is_norm(const Node& node) { return node.op->name.starts_with("batch_norm"); }

// The optimised step with every result of an op as an output of its own, called "node:port".
Graph exposed(const Graph& graph) {
  Graph result;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const Value v = result.append(node, node.inputs);
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      if (node.kind == NodeKind::kOp) {
        result.mark_output(fmt::format("{}:{}", node.name, port), v.at(port));
      }
    }
  }
  return result;
}

struct Whole {
  reference::ReferenceBackend backend;
  train::Job job = test::small_job({"model.norm=batchnorm", "train.batch=8"});
  Graph graph = run_passes(train::build_step(job));
  Variables variables{backend, 1};
  Graph all = exposed(graph);
  std::unique_ptr<Program> program;

  Whole() {
    const CompileOptions plain{.optimize = false, .guard = ""};
    program = std::make_unique<Program>(backend, variables, all, plain);
    test::Rows(job).feed(*program, kRows);
    program->feed("lr", Tensor::scalar(0.1f));
    program->run();
  }

  Tensor value(const std::string& name) const { return program->fetch(name, true); }

  // Gives an input of a part the value that it has in the whole.
  void feed(Program& part, const std::string& input) const {
    if (input.find(':') != std::string::npos) return part.feed(input, value(input));
    if (input == "lr") return part.feed("lr", Tensor::scalar(0.1f));
    if (input != "image") return;  // the others are zero
    const task::Splits& splits = job.splits();
    const auto rows = splits.stream(task::Split::kTrain, {});
    part.feed("image", rows->pick(kRows).values[0]);
  }
};

int count(const Graph& graph, NodeKind kind) {
  int found = 0;
  for (int i = 0; i < graph.size(); ++i) found += graph.node(i).kind == kind;
  return found;
}

TEST_CASE("part: has the picked nodes and nothing else") {
  const Whole whole;
  const struct {
    bool (*selects)(const Node&);
    int nodes;
  } rows[] = {{is_product, 8}, {is_update, 9}, {is_norm, 6}};
  for (const auto& [selects, expected] : rows) {
    const Graph part = part_of(whole.graph, selects);
    verify(part, "part");
    CHECK(count(part, NodeKind::kOp) == expected);
    for (int i = 0; i < part.size(); ++i) {
      if (part.node(i).kind == NodeKind::kOp) CHECK(selects(part.node(i)));
    }
  }
  CHECK(part_of(whole.graph, [](const Node&) { return false; }).size() == 0);
}

TEST_CASE("part: keeps parameters, states and their updates") {
  const Whole whole;
  const Graph updates = part_of(whole.graph, is_update);
  CHECK(count(updates, NodeKind::kParameter) == 9);
  CHECK(count(updates, NodeKind::kState) == 18);
  CHECK(updates.updates().size() == 27);
  CHECK(part_of(whole.graph, is_product).updates().empty());
  // The updates work in place as in the whole: nothing is copied.
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  CHECK(
      Program(backend, variables, updates, {.optimize = false, .guard = ""}).plan().copies.empty());
}

TEST_CASE("part: computes what the whole computes") {
  const Whole whole;
  for (const auto& selects : {is_product, is_norm, is_update}) {
    const Graph part = part_of(whole.graph, selects);
    reference::ReferenceBackend backend;
    Variables variables(backend, 1);
    Program program(backend, variables, part, {.optimize = false, .guard = ""});
    for (int i = 0; i < part.size(); ++i) {
      if (part.node(i).kind == NodeKind::kInput) whole.feed(program, part.node(i).name);
    }
    program.run();
    int compared = 0;
    for (const NamedValue& output : part.outputs()) {
      CAPTURE(output.name);
      test::check_close(program.fetch(output.name, true), whole.value(output.name + ":0"), 0);
      ++compared;
    }
    CHECK(compared > 0);
  }
}

}  // namespace
}  // namespace keel::bench
