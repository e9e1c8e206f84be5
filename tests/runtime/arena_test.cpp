// Programs that share one arena: what they share, and that none of them notices.
#include "src/runtime/arena.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// Counts the bytes that are asked for.
class Counting : public reference::ReferenceBackend {
 public:
  std::vector<std::int64_t> blocks;

  std::unique_ptr<Memory> allocate(std::int64_t bytes) override {
    blocks.push_back(bytes);
    return ReferenceBackend::allocate(bytes);
  }
};

// y = exp(x x) of n rows and columns.
Graph square(std::int64_t n) {
  Graph g;
  const Value x = g.input("x", {DType::kF64, {n, n}});
  g.mark_output("y", ops::exp(g, ops::matmul(g, x, x)));
  return g;
}

Tensor run(Program& program, std::int64_t n) {
  program.feed("x", random_normal({n, n}, std::uint32_t(n), 0, 0.1));
  program.run();
  return program.fetch("y");
}

TEST_CASE("arena: programs of any size share a block, and give what they give alone") {
  Counting backend;
  Variables variables(backend, 1);
  Arena arena(backend);
  const CompileOptions shared{.arena = &arena};
  Program large(backend, variables, square(9), shared);
  Program small(backend, variables, square(4), shared),
      again(backend, variables, square(9), shared);
  CHECK(backend.blocks == std::vector{large.plan().arena_bytes});
  CHECK(large.output_ref("y").data == again.output_ref("y").data);
  const std::pair<Program*, std::int64_t> programs[] = {{&large, 9}, {&small, 4}, {&again, 9}};
  for (int round = 0; round < 3; ++round) {
    for (const auto& [program, n] : programs) {
      CAPTURE(n);
      Program alone(backend, variables, square(n));
      check_close(run(*program, n), run(alone, n), 0);
    }
  }
}

TEST_CASE("arena: a larger program gets a new block, and addresses that are bound do not move") {
  Counting backend;
  Variables variables(backend, 1);
  auto arena = std::make_unique<Arena>(backend);
  const CompileOptions shared{.arena = arena.get()};
  Program small(backend, variables, square(4), shared);
  const void* const place = small.output_ref("y").data;
  const Tensor expected = run(small, 4);
  auto large = std::make_unique<Program>(backend, variables, square(9), shared);
  Program later(backend, variables, square(4), shared);
  CHECK(backend.blocks ==
        std::vector{small.plan().arena_bytes, large->plan().arena_bytes});  // later took none
  CHECK(small.output_ref("y").data == place);
  CHECK(later.output_ref("y").data != place);
  const Tensor others = run(*large, 9);
  // Blocks live as long as programs that were bound to them.
  arena.reset();
  large.reset();
  check_close(small.fetch("y"), expected, 0);
  check_close(run(later, 4), expected, 0);
  check_close(run(small, 4), expected, 0);
}

TEST_CASE("arena: a block is made anew only when it is too small") {
  Counting backend;
  Arena arena(backend);
  const auto first = arena.at_least(100);
  CHECK(arena.at_least(100) == first);
  CHECK(arena.at_least(0) == first);
  const auto second = arena.at_least(101);
  CHECK(second != first);
  CHECK(second->bytes() >= 101);
  CHECK(arena.at_least(100) == second);
  CHECK(first.use_count() == 1);
  CHECK(backend.blocks == std::vector<std::int64_t>{100, 101});
}

}  // namespace
}  // namespace keel::test
