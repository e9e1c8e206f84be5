// Kernels that run on the rows of a norm together with it: which are joined, and that no bit of any
// result depends on it.
#include "src/runtime/joined_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "backends/backends.h"
#include "frontend/nn/net.h"
#include "frontend/nn/norm.h"
#include "src/autodiff/gradient.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "src/passes/narrow_norms.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

constexpr const char* kNorms[] = {
    "layernorm",  "layernorm{axes=2}", "rmsnorm",  "rmsnorm{offset=1}",     "adanorm",
    "detachnorm", "scalenorm",         "seednorm", "groupscaling{groups=2}"};

// One block of a Transformer without its products: s = x + dropout(f), y = norm(s), z = scale y,
// and the gradients of x, f and the parameters for given dy and ds.
Graph block(const std::string& norm, const Shape& shape) {
  Graph g;
  nn::Net net{g};
  net.step = net.first_row = g.constant(Tensor(DType::kI32, {}));
  const TensorType type{DType::kF32, shape};
  const Value x = g.input("x", type), f = g.input("f", type);
  const Value dropped = ops::dropout(g, f, {net.step, net.first_row}, 0.25, 3);
  const Value s = ops::add(g, x, dropped);
  const Value y = nn::Norm::parse(norm)(net, "norm", s);
  g.mark_output("s", s);
  g.mark_output("y", y);
  g.mark_output("z", ops::scale(g, y, 0.5));
  const Value loss = ops::add(g, ops::sum(g, ops::mul(g, y, g.input("dy", type))),
                              ops::sum(g, ops::mul(g, s, g.input("ds", type))));
  std::vector<Value> wrt{x, f};
  for (const Value parameter : g.leaves(NodeKind::kParameter)) wrt.push_back(parameter);
  const Gradients gradients = differentiate(g, loss, wrt, Unreached::kZero);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    g.mark_output("d" + g.node(wrt[i]).name, gradients.of[i]);
  }
  return g;
}

struct Compiled {
  std::unique_ptr<Backend> backend;
  Variables variables;
  Program program;

  Compiled(const Graph& graph, bool join_rows, int threads = 1)
      : backend(make_backend("onednn", {threads})),
        variables(*backend, 1),
        program(*backend, variables, graph, {.join_rows = join_rows}) {}

  Results run(const Shape& shape) {
    std::uint32_t stream = 0;
    for (const char* input : {"x", "f", "dy", "ds"}) {
      if (program.takes(input)) program.feed(input, random_normal(shape, ++stream));
    }
    program.run();
    Results results;
    for (const NamedValue& output : program.graph().outputs()) {
      results[output.name] = program.fetch(output.name, true);
    }
    return results;
  }
};

// One backend may be alive at a time (check_thread_counts).
void check_same_bits(const Graph& graph, const Shape& shape) {
  int kernels = 0;
  const auto run = [&](bool join_rows, int threads) {
    Compiled compiled(graph, join_rows, threads);
    kernels = compiled.program.kernels();
    return compiled.run(shape);
  };
  const Results apart = run(false, 1);
  const int of_each = kernels;
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    check_same_bytes(run(true, threads), apart);
    CHECK(kernels < of_each);
  }
}

TEST_CASE("joined rows: no bit depends on it") {
  for (const char* norm : kNorms) {
    CAPTURE(norm);
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 7, 16}, Shape{5, 4, 516}, Shape{2, 300, 64},
                               Shape{2, 9, 9000}, Shape{64, 20, 100}}) {
      CAPTURE(shape.text());
      const Graph graph = block(norm, shape);
      check_same_bits(graph, shape);
      check_same_bits(narrow_norms(graph), shape);
    }
  }
}

std::vector<std::string> ops_of(const Graph& graph) {
  Compiled compiled(graph, true);
  std::vector<std::string> ops;
  for (const NodeTime& time : compiled.program.profile(1)) ops.push_back(time.op);
  return ops;
}

bool contains(const std::vector<std::string>& ops, const std::string& op) {
  return std::ranges::count(ops, op) > 0;
}

TEST_CASE("joined rows: a dropout and a residual sum with the norm, and sums with its backward") {
  const std::vector<std::string> ops = ops_of(block("layernorm", {2, 3, 8}));
  CAPTURE(fmt::format("{}", fmt::join(ops, ", ")));
  CHECK(contains(ops, "dropout + add + layer_norm + scale"));
  CHECK(std::ranges::any_of(
      ops, [](const std::string& op) { return op.find("layer_norm_backward + ") != op.npos; }));
  // Rows of 6 elements share random numbers with their neighbours.
  CHECK(contains(ops_of(block("layernorm", {2, 3, 6})), "add + layer_norm + scale"));
  // Of one row nothing is joined.
  CHECK(contains(ops_of(block("layernorm", {1, 1, 8})), "layer_norm"));
}

// norm(x) and something that is computed from it.
template <class Then>
Graph with_norm(const Shape& shape, const Then& then) {
  Graph g;
  nn::Net net{g};
  const Value x = g.input("x", {DType::kF32, shape});
  const Value first = ops::exp(g, x);
  g.mark_output("y", then(g, first, nn::Norm::parse("layernorm")(net, "norm", first)));
  return g;
}

TEST_CASE("joined rows: what needs other rows, or is of another size, is not joined") {
  const Shape square{8, 8};
  const auto transposed = [](Graph& g, Value, Value y) {
    return ops::add(g, y, ops::transpose(g, y, {1, 0}));
  };
  const auto last = [](Graph& g, Value, Value y) {
    return ops::exp(g, ops::slice_axis(g, y, 0, 2, 4));
  };
  const auto other = [](Graph& g, Value, Value y) {
    const Value z = g.input("f", {DType::kF32, {8, 8}});
    g.mark_output("y of the norm", y);
    return ops::exp(g, z);
  };
  for (const std::vector<std::string>& ops :
       {ops_of(with_norm(square, transposed)), ops_of(with_norm(square, last)),
        ops_of(with_norm(square, other))}) {
    CAPTURE(fmt::format("{}", fmt::join(ops, ", ")));
    CHECK(contains(ops, "exp + layer_norm"));
  }
}

TEST_CASE("joined rows: what is not finite is still found at its own node") {
  const Shape shape{4, 3, 8};
  Compiled compiled(block("layernorm", shape), true);
  compiled.run(shape);
  Tensor x(DType::kF64, shape), f(DType::kF64, shape);
  for (double& v : x.as<double>()) v = std::numeric_limits<float>::max();
  for (double& v : f.as<double>()) v = std::numeric_limits<float>::max() / 2;
  compiled.program.feed("x", x);
  compiled.program.feed("f", f);
  const auto found = compiled.program.find_non_finite();
  REQUIRE(found.has_value());
  CHECK(found->what == "output 0 of add");
}

}  // namespace
}  // namespace keel::test
