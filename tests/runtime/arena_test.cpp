// Programs that share one arena: what they share, and that none of them notices.
#include "src/runtime/arena.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/runtime/growing_memory.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// Counts the bytes that are asked for. Like memory of a device, its blocks cannot grow.
class Counting : public reference::ReferenceBackend {
 public:
  std::vector<std::int64_t> blocks;

  std::unique_ptr<Memory> allocate(std::int64_t bytes) override {
    blocks.push_back(bytes);
    return ReferenceBackend::allocate(bytes);
  }
  std::unique_ptr<Memory> allocate_growing(std::int64_t bytes) override { return allocate(bytes); }
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

TEST_CASE("arena: a block of the host's memory grows where it lies") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Arena arena(backend);
  const CompileOptions shared{.arena = &arena};
  std::vector<std::unique_ptr<Program>> programs;
  for (std::int64_t n = 2; n < 40; ++n) {
    programs.push_back(std::make_unique<Program>(backend, variables, square(n), shared));
    CHECK(&programs.back()->arena() == &programs.front()->arena());
  }
  CHECK(arena.bytes() == programs.back()->plan().arena_bytes);
  for (std::int64_t n = 2; n < 40; ++n) {
    CAPTURE(n);
    Program alone(backend, variables, square(n));
    check_close(run(*programs[std::size_t(n - 2)], n), run(alone, n), 0);
  }
}

TEST_CASE("growing memory: what it holds stays in its place, and what is added is zero") {
  constexpr std::int64_t kLong = 3 << 20;
  const std::unique_ptr<Memory> memory = allocate_growing_memory(100);
  REQUIRE(memory != nullptr);
  std::byte* const place = memory->address();
  const std::vector<char> text(100, 'x');
  memory->upload(0, text.data(), 100);
  CHECK(memory->grow(kLong));
  CHECK(memory->address() == place);
  CHECK(memory->bytes() == kLong);
  std::vector<char> held(kLong);
  memory->download(0, held.data(), kLong);
  CHECK(std::ranges::count(held, 'x') == 100);
  CHECK(std::ranges::count(held, '\0') == kLong - 100);
  CHECK(memory->grow(50));
  CHECK(memory->bytes() == kLong);
}

TEST_CASE("growing memory: more than there are addresses for is refused, and nothing changes") {
  constexpr std::int64_t kTooLong = std::int64_t{1} << 60;
  const std::unique_ptr<Memory> memory = allocate_growing_memory(100);
  REQUIRE(memory != nullptr);
  CHECK_FALSE(memory->grow(kTooLong));
  CHECK(memory->bytes() == 100);
  CHECK(allocate_growing_memory(kTooLong) == nullptr);
  reference::ReferenceBackend backend;
  CHECK_THROWS_AS(Arena(backend).at_least(kTooLong), Error);
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
