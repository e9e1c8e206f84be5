// Races: every norm, forward and backward, gives the same bits whatever the order in which blocks
// run, and the threads between barriers.
#include <doctest/doctest.h>

#include <cstring>

#include "backends/backends.h"
#include "backends/cuda/emulator/simt.h"
#include "frontend/nn/norm.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/support/graph_runner.h"

namespace keel::cuda {
namespace {

// Every output, parameter and state of one training step of a norm.
std::map<std::string, Tensor> step(const nn::Norm& norm, const Shape& shape) {
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 3);
  Graph g;
  nn::Net net{.graph = g};
  const Value x = g.parameter("x", {DType::kF32, shape}, [](Tensor& value, const Philox&) {
    value = test::random_normal(value.shape(), 4, 1, 2).to(DType::kF32);
  });
  const Value y = norm(net, "n", x);
  const Value weights = g.constant(test::random_normal(shape, 5).to(DType::kF32));
  std::vector<Value> leaves;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).kind == NodeKind::kParameter) leaves.push_back({i, 0});
  }
  g.mark_output("y", y);
  const Value loss = ops::sum(g, ops::mul(g, y, weights));
  const std::vector<Value> gradients = gradient(g, loss, leaves);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    g.mark_output("d " + g.node(leaves[i].node).name, gradients[i]);
  }
  Program program(*backend, variables, g);
  program.run();
  std::map<std::string, Tensor> results;
  for (const NamedValue& output : g.outputs()) results[output.name] = program.fetch(output.name);
  for (const auto& [name, variable] : variables.all()) results[name] = variables.read(name);
  return results;
}

void check_orders(const std::string& name, const Shape& shape) {
  CAPTURE(name);
  const nn::Norm norm = nn::Norm::parse(name);
  const auto expected = step(norm, shape);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    simt::set_order(seed);
    const auto got = step(norm, shape);
    simt::set_order(0);
    REQUIRE(got.size() == expected.size());
    for (const auto& [key, value] : expected) {
      CAPTURE(key);
      const Tensor& other = got.at(key);
      CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
    }
  }
}

TEST_CASE("cuda: no norm depends on the order of threads, narrow rows") {
  for (const nn::NormFacts& facts : nn::norm_facts()) check_orders(facts.name, {9, 12});
}

TEST_CASE("cuda: no norm depends on the order of threads, rows of several warps") {
  for (const nn::NormFacts& facts : nn::norm_facts()) check_orders(facts.name, {3, 260});
}

TEST_CASE("cuda: no norm of images depends on the order of threads") {
  for (const char* name : {"batchnorm", "groupnorm", "instancenorm", "powernorm", "batchrenorm"}) {
    check_orders(name, {2, 4, 5, 7});
  }
}

}  // namespace
}  // namespace keel::cuda
