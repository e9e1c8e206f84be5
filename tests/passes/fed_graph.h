// A graph with random numbers for its inputs.
#pragma once

#include <fmt/format.h>

#include "backends/reference/backend.h"
#include "tests/support/checks.h"

namespace keel::test {

// Calls check(result of before, result of after) for every output of two graphs on the reference.
template <class Check>
void check_results(const Graph& before, const Graph& after, const Feeds& feeds,
                   const Check& check) {
  reference::ReferenceBackend backend;
  const Results expected = run_graph(backend, before, feeds);
  const Results got = run_graph(backend, after, feeds);
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    check(value, got.at(name));
  }
}

struct FedGraph {
  Graph g;
  Feeds feeds;

  // Another input, of normal numbers in float64.
  Value input(const Shape& shape) {
    const std::string name = fmt::format("x{}", feeds.size());
    feeds[name] = random_normal(shape, std::uint32_t(feeds.size()));
    return g.input(name, {DType::kF64, shape});
  }
};

}  // namespace keel::test
