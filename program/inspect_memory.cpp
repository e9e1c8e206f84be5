// keel inspect memory
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "frontend/train/step_graph.h"
#include "program/common.h"
#include "src/runtime/program_cache.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MemoryPart {
  const char* name;
  std::int64_t ProgramMemory::*bytes;
};
constexpr MemoryPart kMemoryParts[] = {{"graph", &ProgramMemory::graph},
                                       {"plan", &ProgramMemory::plan},
                                       {"kernels", &ProgramMemory::kernels},
                                       {"constants", &ProgramMemory::constants},
                                       {"arena", &ProgramMemory::arena}};

// The program of one shape.
struct ShapeRow {
  task::Sizes sizes;
  int nodes = 0, kernels = 0;
  double seconds = 0;  // to compile it
  ProgramMemory memory;
};

struct AllShapes {
  std::vector<ShapeRow> rows;
  ProgramMemory programs;
  std::int64_t arenas = 0;     // blocks that the arenas lie in
  std::int64_t variables = 0;  // parameters and state
  std::int64_t carries = 0;    // what a batch leaves to the next
};

// The memory that all programs share.
struct Shared {
  Shared(Backend& backend, std::uint64_t seed)
      : variables(backend, seed), arena(backend), carries(backend) {}

  Variables variables;
  Arena arena;
  Carries carries;
};

ProgramCache programs_of(const MemoryArgs& args, const train::Job& job, Backend& backend,
                         Shared& shared) {
  if (args.mode == "evaluate") {
    const auto build = [&job](const task::Sizes& sizes) {
      return train::build_evaluate(job, sizes);
    };
    return {backend, shared.variables, build, {.arena = &shared.arena, .carries = &shared.carries}};
  }
  const auto build = [&job](const task::Sizes& sizes) { return train::build_step(job, sizes); };
  const std::string guard = job.train().skips() ? "guard" : "grad_norm";
  return {backend,
          shared.variables,
          build,
          {.guard = guard, .arena = &shared.arena, .carries = &shared.carries}};
}

std::vector<task::Sizes> shapes_of(const MemoryArgs& args, const train::Job& job) {
  if (args.mode == "evaluate") {
    return job.splits().stream(task::Split::kValid, train::evaluation_options(job))->shapes();
  }
  const auto seed = static_cast<std::uint64_t>(job.train().seed);
  return job.splits()
      .stream(task::Split::kTrain, {.batch = job.train().batch, .shuffle = seed})
      ->shapes();
}

ShapeRow shape_row(ProgramCache& programs, const task::Sizes& sizes) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Program& program = programs.at(sizes);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {sizes, program.graph().size(), program.kernels(), seconds, program.memory()};
}

AllShapes compile_shapes(const MemoryArgs& args) {
  const train::Job job = make_job(args.run);
  expect_settled(job);
  const auto backend = make_backend(args.run);
  Shared shared(*backend, static_cast<std::uint64_t>(job.train().seed));
  ProgramCache programs = programs_of(args, job, *backend, shared);
  AllShapes total;
  for (const task::Sizes& sizes : shapes_of(args, job)) {
    total.rows.push_back(shape_row(programs, sizes));
  }
  total.programs = programs.memory();
  total.arenas = programs.arena_bytes();
  for (const auto& [name, variable] : shared.variables.all()) {
    total.variables += variable.memory->bytes();
  }
  total.carries = shared.carries.bytes();
  return total;
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.2f}", double(bytes) / (1 << 20));
}

std::string memory_text(const AllShapes& total) {
  std::vector<std::vector<std::string>> table{{"sizes", "nodes", "kernels", "compile ms"}};
  for (const MemoryPart& part : kMemoryParts) table[0].push_back(fmt::format("{} MiB", part.name));
  for (const ShapeRow& row : total.rows) {
    table.push_back({fmt::format("{}", fmt::join(row.sizes, "x")), fmt::format("{}", row.nodes),
                     fmt::format("{}", row.kernels), fmt::format("{:.0f}", row.seconds * 1e3)});
    for (const MemoryPart& part : kMemoryParts)
      table.back().push_back(mebibytes(row.memory.*part.bytes));
  }
  std::string text = table_text(table);
  text +=
      fmt::format("{} shapes: programs {} MiB", total.rows.size(), mebibytes(total.programs.own()));
  const char* separator = " (";
  for (const MemoryPart& part : kMemoryParts) {
    if (part.bytes == &ProgramMemory::arena) continue;
    text += fmt::format("{}{} {}", separator, part.name, mebibytes(total.programs.*part.bytes));
    separator = ", ";
  }
  text += fmt::format("), arena {} MiB, parameters and state {} MiB", mebibytes(total.arenas),
                      mebibytes(total.variables));
  if (total.carries > 0) text += fmt::format(", carries {} MiB", mebibytes(total.carries));
  return text + "\n";
}

Json memory_parts_json(const ProgramMemory& memory) {
  Json json = Json::object();
  for (const MemoryPart& part : kMemoryParts)
    json[fmt::format("{}_bytes", part.name)] = memory.*part.bytes;
  return json;
}

Json memory_json(const AllShapes& total) {
  Json shapes = Json::array();
  for (const ShapeRow& row : total.rows) {
    Json json{{"sizes", row.sizes},
              {"nodes", row.nodes},
              {"kernels", row.kernels},
              {"compile_seconds", row.seconds}};
    json.update(memory_parts_json(row.memory));
    shapes.push_back(json);
  }
  Json sum = memory_parts_json(total.programs);
  sum["programs_bytes"] = total.programs.own();
  sum["arena_bytes"] = total.arenas;
  sum["variables_bytes"] = total.variables;
  sum["carries_bytes"] = total.carries;
  return {{"shapes", shapes}, {"sum", sum}};
}

}  // namespace

int run_inspect_memory(const MemoryArgs& args) {
  const AllShapes total = compile_shapes(args);
  args.run.json ? print_json(memory_json(total)) : print(memory_text(total));
  return 0;
}

}  // namespace keel::cli
