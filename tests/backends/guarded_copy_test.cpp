// Copies of states that a step does not change in place, as running statistics.
#include <doctest/doctest.h>

#include <limits>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/runtime/program.h"

namespace keel {
namespace {

constexpr int kStates = 40;

// State i has 1 + 37 i elements s, which become s / 2 + i + 1.
Graph halving_states() {
  Graph g;
  for (int i = 0; i < kStates; ++i) {
    const Value s = g.state(fmt::format("s{}", i), {DType::kF32, {1 + 37 * i}}, nullptr);
    const Value next = ops::scale(g, s, 0.5, i + 1);
    g.mark_update(s, next);
    g.mark_output(fmt::format("last{}", i), ops::sum(g, ops::mul(g, s, next)));
  }
  g.mark_output("guard", ops::scale(g, g.input("given", {DType::kF32, {}}), 2, 0));
  return g;
}

TEST_CASE("backend copies: states change as a whole, or not at all if the guard is not finite") {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program program(*backend, variables, halving_states(), {.guard = "guard"});
  const auto run = [&](double guard) {
    program.feed("given", Tensor::scalar(float(guard)));
    program.run();
  };
  const auto check_states = [&](double factor) {
    for (int i = 0; i < kStates; ++i) {
      CAPTURE(i);
      const Tensor s = variables.read(fmt::format("s{}", i));
      for (std::int64_t e = 0; e < s.elements(); ++e) {
        CAPTURE(e);
        REQUIRE(s.at(e) == factor * (i + 1));
      }
    }
  };
  run(1);
  check_states(1);
  run(std::numeric_limits<double>::infinity());
  run(std::numeric_limits<double>::quiet_NaN());
  check_states(1);
  run(-1);
  check_states(1.5);
}

}  // namespace
}  // namespace keel
