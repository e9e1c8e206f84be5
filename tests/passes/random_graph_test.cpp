// Hundreds of random training graphs: compiled programs, with and without passes, agree step by
// step with running the graph as it is written, every value in memory of its own.
#include "tests/support/random_graph.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "src/passes/pipeline.h"
#include "src/runtime/interpreter.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

constexpr std::uint64_t kGraphs = 300, kVariableSeed = 5;
// Merged scales round differently in the last places.
constexpr double kTolerance = 1e-11;

void check_program(std::uint64_t seed, bool optimize) {
  const RandomGraph random = random_graph(seed);
  reference::ReferenceBackend backend;
  Variables variables(backend, kVariableSeed);
  Program program(backend, variables, random.graph, {.optimize = optimize, .verify_passes = true});
  Interpreter expected(backend, random.graph, kVariableSeed);
  for (const auto& [name, value] : random.feeds) {
    program.feed(name, value);
    expected.feed(name, value);
  }
  // The inputs are fed once: no run may disturb them.
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    program.run();
    expected.run();
    for (const NamedValue& output : random.graph.outputs()) {
      CAPTURE(output.name);
      check_close(program.fetch(output.name, true), expected.output(output.name), kTolerance);
    }
    for (const auto& [name, variable] : variables.all()) {
      CAPTURE(name);
      check_close(variables.read(name, true), expected.leaf(name), kTolerance);
    }
  }
}

TEST_CASE("random graphs: programs agree with the graph as it is written, step by step" *
          doctest::test_suite("slow")) {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    for (bool optimize : {false, true}) {
      CAPTURE(seed);
      CAPTURE(optimize);
      check_program(seed, optimize);
    }
  }
}

TEST_CASE("random graphs: they are finite, and the passes have work in most of them" *
          doctest::test_suite("slow")) {
  std::uint64_t smaller = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    CAPTURE(seed);
    const RandomGraph random = random_graph(seed);
    smaller += run_passes(random.graph).size() < random.graph.size();
    reference::ReferenceBackend backend;
    const Results results = run_graph(backend, random.graph, random.feeds);
    CHECK(std::isfinite(results.at("loss").at(0)));
  }
  CHECK(smaller > kGraphs * 9 / 10);
}

}  // namespace
}  // namespace keel::test
