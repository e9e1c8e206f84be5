// Scalars that the host looks at after later runs have begun.
#include "src/runtime/scalars.h"

#include <doctest/doctest.h>

#include "backends/backends.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("scalars: each is that of its own run, whatever ran since") {
  for (const std::string& name : {std::string("reference"), default_backend()}) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    Variables variables(*backend, 1);
    Graph g;
    const Value x = g.input("x", {DType::kF32, {2}});
    g.mark_output("sum", ops::sum(g, x));
    g.mark_output("largest", ops::max(g, x, {0}));
    Program program(*backend, variables, g);
    Scalars scalars(*backend, 6);
    CHECK(scalars.have_arrived());
    for (int round = 0; round < 2; ++round) {
      CAPTURE(round);
      for (int i = 0; i < 3; ++i) {
        program.feed("x", Tensor::of<float>({2}, {float(i), float(10 * i + round)}));
        program.run();
        scalars.send(program, "sum");
        scalars.send(program, "largest");
      }
      program.feed("x", Tensor::of<float>({2}, {-1, -1}));
      program.run();
      CHECK(scalars.size() == 6);
      for (int i = 0; i < 3; ++i) {
        CHECK(scalars.at(2 * i) == 11 * i + round);
        CHECK(scalars.at(2 * i + 1) == 10 * i + round);
      }
      CHECK(scalars.have_arrived());
      scalars.clear();
    }
  }
}

TEST_CASE("scalars: refusals") {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2}});
  g.mark_output("y", ops::neg(g, x));
  g.mark_output("sum", ops::sum(g, x));
  Program program(*backend, variables, g);
  program.feed("x", Tensor::of<float>({2}, {1, 2}));
  program.run();
  Scalars scalars(*backend, 1);
  check_refused([&] { scalars.send(program, "z"); }, "no output is called 'z'");
  const TensorType stored{backend->storage(DType::kF32), {2}};
  check_refused([&] { scalars.send(program, "y"); }, "[scalars]", "got 1 " + stored.text());
  check_refused([&] { scalars.at(0); }, "[scalars] expected one of 0, got 0");
  scalars.send(program, "sum");
  check_refused([&] { scalars.send(program, "sum"); }, "[scalars]", "at most 1 scalars, got 2");
  CHECK(scalars.at(0) == 3);
}

}  // namespace
}  // namespace keel::test
