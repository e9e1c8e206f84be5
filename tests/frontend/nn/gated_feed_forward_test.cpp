// The gated feed-forward sublayer against its formula.
#include "frontend/nn/gated_feed_forward.h"

#include <array>

#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

Layer gated(std::int64_t units, double dropout = 0) {
  return [=](Net& net, Value x) {
    return gated_feed_forward(net, "ff", x, {.units = units, .dropout = dropout});
  };
}

TEST_CASE("gated feed-forward: the formula, element by element") {
  LayerRun run(gated(5), {2, 3, 4});
  CHECK(run.parameters ==
        std::vector<std::string>{"ff/gate/weight", "ff/up/weight", "ff/down/weight"});
  run.program->run();
  const Tensor gate = run.read("ff/gate/weight"), up = run.read("ff/up/weight"),
               down = run.read("ff/down/weight");
  REQUIRE(gate.shape() == Shape{4, 5});
  REQUIRE(down.shape() == Shape{5, 4});
  const Tensor x = test::random_normal({2, 3, 4}, 5, 2, 3), y = run.program->fetch("y", true);
  REQUIRE(y.shape() == x.shape());
  for (std::int64_t row = 0; row < 6; ++row) {
    std::array<double, 4> expected{};
    for (std::int64_t unit = 0; unit < 5; ++unit) {
      double a = 0, b = 0;
      for (std::int64_t i = 0; i < 4; ++i) {
        a += x.at(row * 4 + i) * gate.at(i * 5 + unit);
        b += x.at(row * 4 + i) * up.at(i * 5 + unit);
      }
      const double h = a / (1 + std::exp(-a)) * b;
      for (std::int64_t o = 0; o < 4; ++o) expected[std::size_t(o)] += h * down.at(unit * 4 + o);
    }
    for (std::int64_t o = 0; o < 4; ++o) {
      CHECK(y.at(row * 4 + o) == doctest::Approx(expected[std::size_t(o)]).epsilon(1e-5));
    }
  }
}

TEST_CASE("gated feed-forward: gradients") {
  LayerRun run(gated(5), {2, 3, 4});
  check_central_differences(run);
}

TEST_CASE("gated feed-forward: dropout is of the units, in training") {
  LayerRun none(gated(400), {1, 2, 4}), some(gated(400, 0.5), {1, 2, 4}),
      evaluated(gated(400, 0.5), {1, 2, 4}, Mode::kEvaluate);
  for (LayerRun* run : {&none, &some, &evaluated}) run->program->run();
  const Tensor expected = none.program->fetch("y", true);
  test::check_close(evaluated.program->fetch("y", true), expected, 1e-12);
  const Tensor dropped = some.program->fetch("y", true);
  for (std::int64_t e = 0; e < 8; ++e) {
    CHECK(dropped.at(e) != expected.at(e));
    CHECK(dropped.at(e) != 0);  // it is no output that is dropped
  }
}

}  // namespace
}  // namespace keel::nn
