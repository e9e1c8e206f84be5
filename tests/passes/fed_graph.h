// A graph with random numbers for its inputs.
#pragma once

#include <fmt/format.h>

#include "tests/support/checks.h"

namespace keel::test {

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
