// Instances of a graph that run in parts: each with an arena to itself, or taking turns in one.
#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "src/ops/shard_parts.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// y = sigmoid(x)^2 times the sum of all shards' sums; z reads x and a view of the square, which
// both are older than the collective, and later ones read the collective again.
Graph collective_graph() {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3}});
  const Value s = ops::sigmoid(g, x);
  const Value square = ops::mul(g, s, s), line = ops::reshape(g, square, {6});
  const Value all = ops::sum(g, ops::all_shards(g, ops::sum(g, square), 2));
  const Value y = ops::mul(g, square, all);
  const Value more = ops::sum(g, ops::all_shards(g, ops::sum(g, ops::mul(g, y, x)), 2));
  const Value scale = g.input("scale", {DType::kF32, {}});
  g.mark_output("y", y);
  g.mark_output("z", ops::mul(g, ops::mul(g, line, more), ops::mul(g, all, scale)));
  return g;
}

struct PartsMachine {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  Arena arena{backend};
  void feed(Program& program, std::size_t i) {
    program.feed("x",
                 i == 0 ? f64({2, 3}, {1, -2, 3, 4, -5, 6}) : f64({2, 3}, {0.5, 1, -1, 2, 7, -3}));
    program.feed("scale", f64({}, {double(i + 2)}));
  }
};

// Puts what an instance gives in a collective into the values of all.
void give(const Program& program, std::int64_t collective, std::size_t i,
          std::vector<double>& all) {
  program.read(program.collective(collective),
               std::as_writable_bytes(std::span(all).subspan(i, 1)));
}

TEST_CASE("program: instances that take turns in one arena have the results of those that do not") {
  PartsMachine m;
  const Graph graph = collective_graph();
  std::vector<Tensor> expected, got;
  std::vector<std::unique_ptr<Program>> own;
  for (std::size_t i = 0; i < 2; ++i) {
    own.push_back(std::make_unique<Program>(m.backend, m.variables, graph));
    m.feed(*own[i], i);
  }
  for (std::int64_t part = 0; part <= 2; ++part) {
    std::vector<double> all(2);
    for (std::size_t i = 0; i < 2; ++i) {
      own[i]->run_part(part);
      if (part < 2) give(*own[i], part, i, all);
    }
    for (std::size_t i = 0; i < 2 && part < 2; ++i) {
      own[i]->feed(own[i]->collective(part), std::as_bytes(std::span(all)));
    }
  }
  for (const auto& program : own) expected.push_back(program->fetch("z", true));

  Program shared(m.backend, m.variables, graph, {.arena = &m.arena});
  std::vector<std::unique_ptr<Memory>> kept;
  std::vector<std::vector<double>> met(2, std::vector<double>(2));
  for (std::size_t i = 0; i < 2; ++i) kept.push_back(m.backend.allocate(shared.kept_bytes()));
  for (std::int64_t part = 0; part <= 2; ++part) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (part == 0) m.feed(shared, i);
      if (part > 0) shared.enter_part(part, *kept[i]);
      for (const std::int64_t read : shared.collectives_read(part)) {
        shared.feed(shared.collective(read), std::as_bytes(std::span(met[std::size_t(read)])));
      }
      shared.run_part(part);
      if (part < 2) give(shared, part, i, met[std::size_t(part)]);
      shared.leave_part(part, *kept[i]);
      if (part == shared.part_of("z")) got.push_back(shared.fetch("z", true));
    }
  }
  REQUIRE(got.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) check_close(got[i], expected[i], 0);
  CHECK(expected[0].at(0) != expected[1].at(0));
}

TEST_CASE(
    "program: an instance keeps what later parts read, a view of it once, and no collective") {
  PartsMachine m;
  const Program program(m.backend, m.variables, collective_graph());
  // x, the square and scale, each aligned. The sum of the first collective takes the place of x,
  // which the last part does not read.
  CHECK(program.kept_bytes() == 3 * std::int64_t(kAlignment));
  CHECK(program.collectives_read(0).empty());
  REQUIRE(program.collectives_read(1).size() == 1);
  CHECK(program.collectives_read(1)[0] == 0);
  CHECK(program.part_of("y") == 1);
  CHECK(program.part_of("z") == 2);
}

}  // namespace
}  // namespace keel::test
