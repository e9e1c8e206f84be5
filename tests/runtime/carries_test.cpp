// Carries: what programs go on from, what begins again, and where it lies.
#include "src/runtime/carries.h"

#include <doctest/doctest.h>

#include <limits>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "src/runtime/program_cache.h"
#include "tests/support/checks.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// total <- y = total + x, of n elements. The guard is x[0] / x[0].
Graph running_total(std::int64_t n) {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {n}}), guard = g.input("guard", {DType::kF32, {}});
  const Value total = g.carry("total", {DType::kF32, {n}});
  const Value y = ops::add(g, total, x);
  g.mark_output("y", y);
  g.mark_output("guard", ops::scale(g, guard, 1));
  g.mark_update(total, y);
  return g;
}

double step(Program& program, std::int64_t n, double x, double guard = 0) {
  Tensor fed(DType::kF32, {n});
  for (float& element : fed.as<float>()) element = float(x);
  program.feed("x", fed);
  program.feed("guard", Tensor::scalar(float(guard)));
  program.run();
  return program.fetch("y").at(n - 1);
}

TEST_CASE("carries: a program goes on from what it left, and one of its own from nothing") {
  for (const std::string& name : tested_backends()) {
    const auto backend = make_backend(name);
    Variables variables(*backend, 1);
    Carries carries(*backend);
    Program first(*backend, variables, running_total(3), {.carries = &carries});
    Program second(*backend, variables, running_total(3), {.carries = &carries});
    Program alone(*backend, variables, running_total(3));
    CHECK(step(first, 3, 1) == 1);
    CHECK(step(first, 3, 2) == 3);
    CHECK(step(second, 3, 4) == 7);
    CHECK(step(alone, 3, 8) == 8);
    CHECK(step(first, 3, 16) == 23);
    carries.clear();
    CHECK(step(second, 3, 32) == 32);
    CHECK(variables.all().empty());
  }
}

TEST_CASE("carries: programs of a cache go on from each other") {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  const auto build = [](const ProgramCache::Sizes& sizes) { return running_total(sizes[1]); };
  ProgramCache programs(*backend, variables, build), others(*backend, variables, build);
  CHECK(step(programs.at({0, 2}), 2, 1) == 1);
  CHECK(step(programs.at({1, 2}), 2, 2) == 3);
  CHECK(step(others.at({0, 2}), 2, 4) == 4);
}

TEST_CASE("carries: another shape begins as zeros, in the memory of the shape before") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Carries carries(backend);
  const CompileOptions shared{.carries = &carries};
  Program four(backend, variables, running_total(4), shared);
  Program two(backend, variables, running_total(2), shared);
  const std::int64_t bytes = carries.bytes();
  CHECK(bytes == 4 * 8);
  CHECK(step(four, 4, 1) == 1);
  CHECK(step(two, 2, 2) == 2);
  CHECK(step(two, 2, 3) == 5);
  CHECK(step(four, 4, 4) == 4);
  Program six(backend, variables, running_total(6), shared);
  CHECK(carries.bytes() == bytes + 6 * 8);
  CHECK(step(four, 4, 5) == 9);  // nothing has moved under it
  CHECK(step(six, 6, 6) == 6);
  Program five(backend, variables, running_total(5), shared),
      three(backend, variables, running_total(3), shared);
  CHECK(carries.bytes() == bytes + 6 * 8);
  CHECK(step(five, 5, 7) == 7);
  CHECK(step(six, 6, 8) == 8);
}

TEST_CASE("carries: values are read and written, and are in the types that the backend stores") {
  for (const std::string& name : tested_backends()) {
    const auto backend = make_backend(name);
    Variables variables(*backend, 1);
    Carries carries(*backend), others(*backend);
    Program program(*backend, variables, running_total(2), {.carries = &carries});
    Program other(*backend, variables, running_total(2), {.carries = &others});
    CHECK(carries.read().empty());
    step(program, 2, 0.1);
    const auto values = carries.read();
    REQUIRE(values.size() == 1);
    CHECK(values.at("total").type() == TensorType{backend->storage(DType::kF32), {2}});
    others.write(values);
    CHECK(step(other, 2, 0.2) == step(program, 2, 0.2));
    others.write({});
    CHECK(step(other, 2, 4) == 4);
  }
}

TEST_CASE("carries: what does not fit is refused, and changes nothing") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Carries carries(backend);
  Program program(backend, variables, running_total(2), {.carries = &carries});
  step(program, 2, 1);
  const auto refused = [&](const char* name, Tensor value, const char* beginning) {
    std::map<std::string, Tensor> values;
    values.emplace(name, std::move(value));
    check_refused([&] { carries.write(values); }, beginning, "", ErrorKind::kBadInput);
  };
  refused("totl", f64({2}, {1, 2}), "no carry is called 'totl'");
  refused("total", i32({2}, {1, 2}), "total: expected a carry of f32, got i32(2)");
  CHECK(step(program, 2, 2) == 3);
  check_refused(
      [&] {
        carries.place("total", {DType::kI32, {2}});
      },
      "total: expected a carry of f32, got i32(2)");
}

TEST_CASE("carries: a run that its guard refuses leaves nothing") {
  for (const std::string& name : tested_backends()) {
    const auto backend = make_backend(name);
    Variables variables(*backend, 1);
    Program program(*backend, variables, running_total(2), {.guard = "guard"});
    step(program, 2, 1);
    CHECK(step(program, 2, 2, std::numeric_limits<double>::infinity()) == 3);
    CHECK(step(program, 2, 4) == 5);
  }
}

TEST_CASE("carries: looking for what is not finite leaves nothing") {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program program(*backend, variables, running_total(2));
  step(program, 2, 1);
  CHECK_FALSE(program.find_non_finite().has_value());
  CHECK(step(program, 2, 2) == 3);
}

}  // namespace
}  // namespace keel::test
