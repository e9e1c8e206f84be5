// Which element types kernels take: whatever an op's own checks let through is either refused by
// name when the node is prepared, or run rightly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "backends/backends.h"
#include "frontend/compare/cases/layer_subjects.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/op_table.h"
#include "src/ops/reduce.h"
#include "src/ops/relative_attention.h"
#include "src/runtime/program.h"
#include "src/runtime/run_node.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

using Types = std::vector<std::optional<TensorType>>;  // of a node's inputs, some of them absent

// Only the op: its inputs are the graph's, and its node is the last one.
Graph lone_node(const Node& node, const Types& types) {
  Graph g;
  std::vector<Value> inputs;
  for (const auto& type : types) {
    inputs.push_back(type ? g.input(fmt::format("x{}", inputs.size()), *type) : Value{});
  }
  g.add(*node.op, inputs, node.attrs);
  return g;
}

Types types_of(const Graph& graph, const Node& node) {
  Types types;
  for (Value v : node.inputs)
    types.push_back(v.valid() ? std::optional(graph.type(v)) : std::nullopt);
  return types;
}

// The types with one input of another element type, and with all floating ones of another.
std::vector<Types> variants(const Types& types) {
  std::vector<Types> result;
  for (const DType dtype : kAllDTypes) {
    Types floating = types;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!types[i]) continue;
      Types one = types;
      one[i]->dtype = dtype;
      if (dtype != types[i]->dtype) result.push_back(std::move(one));
      if (is_floating(types[i]->dtype)) floating[i]->dtype = dtype;
    }
    if (floating != types) result.push_back(std::move(floating));
  }
  return result;
}

// Small whole numbers, which every type holds; 0 where the node wants i32, for they may be ids.
Tensor numbers(const TensorType& usual) {
  Tensor result(DType::kF64, usual.shape);
  std::int64_t element = 0;
  for (double& value : result.as<double>()) {
    value = usual.dtype == DType::kI32 ? 0 : double(element++ % 7 + 1);
  }
  return result;
}

// The result of the last node of `g` for these numbers, as float64; nothing for a bf16 output.
std::vector<Tensor> outputs(Backend& backend, const Graph& g, const std::vector<Tensor>& values) {
  std::vector<const Tensor*> inputs;
  std::size_t next = 0;
  for (Value v : g.node(g.size() - 1).inputs)
    inputs.push_back(v.valid() ? &values[next++] : nullptr);
  std::vector<Tensor> results;
  for (const Tensor& y : run_node(backend, g, g.size() - 1, inputs).outputs) {
    results.push_back(y.to(DType::kF64));
  }
  return results;
}

struct Machines {
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<Backend> reference = make_backend("reference");
  std::set<std::string_view> ops;  // that were tried
  int refused = 0, taken = 0;

  Machines() {
    for (const BackendEntry& entry : known_backends()) {
      if (entry.missing.empty()) backends.push_back(make_backend(entry.name));
    }
  }
};

// How far a result may be off, as a share of the largest. Attention with bf16 factors rounds its
// exponentials as well: those above and below the division are off by 2^-9 of themselves, so that
// the mean of positive numbers, which it then is, is off by 2^-8.
double tolerance_of(const Graph& g, const Node& node) {
  const bool is_attention = node.op == &kAttention || node.op == &kRelativeAttention;
  const bool is_narrow = is_attention && g.type(node.inputs[0]).dtype == DType::kBF16;
  return 1e-6 + (is_narrow ? std::ldexp(1.0, -8) : 0);
}

// A node that a backend takes in other types gives the numbers that it gives in the usual ones.
void check_runs(Machines& machines, Backend& backend, const Graph& usual, const Graph& other) {
  std::vector<Tensor> values;
  for (Value v : usual.leaves(NodeKind::kInput)) values.push_back(numbers(usual.type(v)));
  const auto got = outputs(backend, other, values);
  const auto expected = outputs(*machines.reference, usual, values);
  REQUIRE(got.size() == expected.size());
  for (std::size_t j = 0; j < got.size(); ++j) {
    // Padding, say, is cut to a whole number where the output is whole.
    const Node& node = other.node(other.size() - 1);
    const DType dtype = node.outputs[j].dtype;
    const Tensor wanted = is_floating(dtype) ? expected[j].clone() : expected[j].to(dtype);
    check_close(got[j], wanted.to(DType::kF64), tolerance_of(other, node));
  }
}

void check_types(Machines& machines, const Node& node, const Types& usual, const Types& other) {
  Graph g;
  try {
    g = lone_node(node, other);
  } catch (const Error& error) {
    CHECK(std::string_view(error.what()).starts_with(fmt::format("[{}] ", node.op->name)));
    return;
  }
  for (const auto& backend : machines.backends) {
    CAPTURE(backend->name());
    const std::string refusal = backend->prepare({g, g.node(g.size() - 1)}).refusal;
    if (refusal.empty()) {
      ++machines.taken;
      if (backend->name() != "null") check_runs(machines, *backend, lone_node(node, usual), g);
      continue;
    }
    ++machines.refused;
    CAPTURE(refusal);
    CHECK(refusal.starts_with(fmt::format("[{}] ", node.op->name)));
    CHECK(refusal.find(fmt::format(": the kernel of {} ", backend->name())) != std::string::npos);
  }
}

// Whether an op takes any number of inputs, of which the last name stands for many.
bool takes_many(const OpInfo& op) { return op.inputs.size() == 1 && op.name != "cast"; }

void check_node(Machines& machines, const Graph& graph, const Node& node) {
  const OpInfo& op = *node.op;
  CAPTURE(op.name);
  machines.ops.insert(op.name);
  CHECK_FALSE(op.inputs.empty());
  CHECK((takes_many(op) || node.inputs.size() <= op.inputs.size()));
  const Types usual = types_of(graph, node);
  for (std::size_t i = 0; i < usual.size(); ++i) {
    CAPTURE(i);
    if (usual[i]) CHECK(input_types(op, int(i)).contains(usual[i]->dtype));
  }
  for (const Types& other : variants(usual)) {
    std::string text;
    for (const auto& type : other) text += type ? type->text() + " " : "- ";
    CAPTURE(text);
    check_types(machines, node, usual, other);
  }
}

TEST_CASE("kernel types: every op takes every type rightly or refuses it by name" *
          doctest::test_suite("slow")) {
  Machines machines;
  for (const std::string& op : compare::subject_ops()) {
    for (const auto& subject : compare::op_subjects(op, {.unfused = op != "fused_elementwise"})) {
      const Graph& graph = subject->graph();
      for (int i = 0; i < graph.size(); ++i) {
        const Node& node = graph.node(i);
        if (node.kind == NodeKind::kOp && node.op->name == op) check_node(machines, graph, node);
      }
    }
  }
  for (const std::string& op : compare::subject_ops()) {
    CAPTURE(op);
    CHECK(machines.ops.contains(op));
  }
  CHECK(machines.refused > 1000);
  CHECK(machines.taken > 100);
}

// One graph that no check of an op refuses, and what a backend says of it.
struct WrongGraph {
  const char* backend;
  Value (*build)(Graph&);
  const char* refusal;
};

Value max_backward_of_integers(Graph& g) {
  const Value whole = g.input("dy", {DType::kI32, {2, 1}});
  const Value x = g.input("x", {DType::kF32, {2, 3}}), y = g.input("y", {DType::kF32, {2, 1}});
  return g.add(kMaxBackward, {whole, x, y});
}
template <DType kType>
Value product(Graph& g) {
  const Value a = g.input("a", {kType, {2, 2}});
  return ops::matmul(g, a, a);
}
template <DType kTo>
Value cast_to(Graph& g) {
  return ops::cast(g, g.input("x", {DType::kI32, {3}}), kTo);
}
template <DType kType>
Value transposed(Graph& g) {
  return ops::transpose(g, g.input("x", {kType, {3, 2}}), {1, 0});
}

constexpr WrongGraph kWrongGraphs[] = {
    {"reference", max_backward_of_integers,
     "[max_backward] dy: the kernel of reference takes f32, f64 or bf16, got i32"},
    {"null", max_backward_of_integers,
     "[max_backward] dy: the kernel of null takes f32, f64 or bf16, got i32"},
    {"onednn", max_backward_of_integers,
     "[max_backward] dy: the kernel of onednn takes f32, got i32"},
    {"cuda", max_backward_of_integers, "[max_backward] dy: the kernel of cuda takes f32, got i32"},
    {"onednn", product<DType::kF64>, "[matmul] a: the kernel of onednn takes f32 or bf16, got f64"},
    {"cuda", product<DType::kF64>, "[matmul] a: the kernel of cuda takes f32 or bf16, got f64"},
    {"onednn", cast_to<DType::kF64>,
     "[cast] output 0: the kernel of onednn gives f32, bf16, i32 or u8, got f64"},
    {"cuda", cast_to<DType::kF64>,
     "[cast] output 0: the kernel of cuda gives f32, bf16, i32 or u8, got f64"},
    {"cuda", transposed<DType::kF64>,
     "[transpose] x: the kernel of cuda takes f32, bf16, i32 or u8, got f64"},
    {"onednn", transposed<DType::kF64>,
     "[transpose] x: the kernel of onednn takes f32, bf16, i32 or u8, got f64"},
};

bool is_built_in(const std::string& backend) {
  return std::ranges::any_of(known_backends(), [&](const BackendEntry& entry) {
    return entry.name == backend && entry.missing.empty();
  });
}

TEST_CASE("kernel types: a graph with a wrong type is refused by name when it is compiled") {
  for (const WrongGraph& wrong : kWrongGraphs) {
    if (!is_built_in(wrong.backend)) continue;
    CAPTURE(wrong.refusal);
    const auto backend = make_backend(wrong.backend);
    Graph g;
    g.mark_output("y", wrong.build(g));
    Variables variables(*backend, 1);
    check_refused([&] { Program(*backend, variables, g, {.optimize = false}); },
                  fmt::format("backend {} refuses ", wrong.backend), wrong.refusal,
                  ErrorKind::kBackendMissing);
  }
}

TEST_CASE("kernel types: the guard of an update is a floating number that the backend reads") {
  for (const char* name : {"reference", "onednn", "cuda", "null"}) {
    if (!is_built_in(name)) continue;
    CAPTURE(name);
    const auto backend = make_backend(name);
    const auto memory = backend->allocate(64);
    const TensorRef leaf{memory->address(), {DType::kF32, {4}}};
    const TensorRef whole{memory->address() + 32, {DType::kI32, {}}};
    check_refused([&] { backend->copy(leaf, leaf, whole); }, "[copy] guard: expected f32",
                  "got i32", ErrorKind::kBackendMissing);
  }
}

}  // namespace
}  // namespace keel::test
