// The memory that the programs of many shapes hold together: those of a small translation model, as
// a training meets them.
#include <doctest/doctest.h>

#include <algorithm>

#include "backends/backends.h"
#include "frontend/train/step_graph.h"
#include "src/runtime/program_cache.h"
#include "tests/support/small_run.h"

namespace keel::test {
namespace {

constexpr std::int64_t kShapes = 60;
// The bytes that a node may hold, its kernel and its names included, for all shapes together.
constexpr std::int64_t kMostBytesOfNode = 1600;

// Rows, source length, target length: a little longer every time.
task::Sizes shape(std::int64_t i) { return {4 + i % 3, 4 + i / 2, 4 + i}; }

struct Shapes {
  std::unique_ptr<Backend> backend = make_backend(default_backend());
  train::Job job = small_job({}, "translation");
  Variables variables{*backend, 1};
  Arena arena{*backend};
  ProgramCache programs{*backend,
                        variables,
                        [this](const task::Sizes& sizes) { return train::build_step(job, sizes); },
                        {.guard = "grad_norm", .arena = &arena}};
  std::int64_t nodes = 0, largest = 0;  // of the arenas

  Shapes() {
    for (std::int64_t i = 0; i < kShapes; ++i) {
      const Program& program = programs.at(shape(i));
      nodes += program.graph().size();
      largest = std::max(largest, program.plan().arena_bytes);
    }
  }
};

TEST_CASE("many shapes: programs of a growing translation model lie in one block, the largest's" *
          doctest::test_suite("slow")) {
  Shapes shapes;
  REQUIRE(shapes.programs.size() == kShapes);
  const bool grows = shapes.backend->allocate_growing(1)->grow(1 << 20);
  const ProgramMemory memory = shapes.programs.memory();
  CHECK(memory.arena == shapes.largest);
  if (grows) {
    CHECK(shapes.programs.arena_bytes() == shapes.largest);
    CHECK(memory.own() + shapes.programs.arena_bytes() <
          shapes.nodes * kMostBytesOfNode + shapes.largest);
  }
}

TEST_CASE("many shapes: the parts are those of each program, and a node holds little" *
          doctest::test_suite("slow")) {
  Shapes shapes;
  ProgramMemory sum;
  for (std::int64_t i = 0; i < kShapes; ++i) sum += shapes.programs.at(shape(i)).memory();
  const ProgramMemory memory = shapes.programs.memory();
  CHECK(memory.own() == sum.own());
  CHECK(memory.graph > 0);
  CHECK(memory.plan > 0);
  CHECK(memory.kernels > 0);
  CHECK(memory.constants > 0);
  CAPTURE(memory.graph / shapes.nodes);
  CAPTURE(memory.kernels / shapes.nodes);
  CHECK(memory.own() / shapes.nodes < kMostBytesOfNode);
}

}  // namespace
}  // namespace keel::test
