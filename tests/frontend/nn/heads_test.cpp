// Norms of heads and repeated heads against their formulas.
#include "frontend/nn/heads.h"

#include "frontend/nn/layers.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

TEST_CASE("heads: a repeated head is its own neighbour") {
  LayerRun run([](Net& net, Value x) { return repeat_heads(net, x, 2, 3); }, {2, 3, 8});
  run.program->run();
  const Tensor x = test::random_normal({2, 3, 8}, 5, 2, 3), y = run.program->fetch("y", true);
  REQUIRE(y.shape() == Shape{2, 3, 24});
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t head = 0; head < 6; ++head) {
      for (std::int64_t i = 0; i < 4; ++i) {
        CHECK(y.at(row * 24 + head * 4 + i) == x.at(row * 8 + head / 3 * 4 + i));
      }
    }
  }
}

TEST_CASE("heads: a norm of heads takes the statistics of one head, and all share its gain") {
  LayerRun run([](Net& net, Value x) { return norm_heads(net, "n", x, 3, Norm::parse("rmsnorm")); },
               {2, 4, 6});
  CHECK(run.parameters == std::vector<std::string>{"n/gain"});
  run.variables.write("n/gain", test::f64({2}, {1, 3}));
  run.program->run();
  const Tensor x = test::random_normal({2, 4, 6}, 5, 2, 3), y = run.program->fetch("y", true);
  REQUIRE(y.shape() == x.shape());
  for (std::int64_t head = 0; head < 24; ++head) {
    const double a = x.at(2 * head), b = x.at(2 * head + 1);
    const double root = std::sqrt((a * a + b * b) / 2 + 1e-8);
    CHECK(y.at(2 * head) == doctest::Approx(a / root).epsilon(1e-6));
    CHECK(y.at(2 * head + 1) == doctest::Approx(3 * b / root).epsilon(1e-6));
  }
}

TEST_CASE("heads: gradients") {
  LayerRun run(
      [](Net& net, Value x) {
        const Value heads =
            norm_heads(net, "n", linear(net, "fc", x, 4), 2, Norm::parse("rmsnorm"));
        return repeat_heads(net, heads, 2, 3);
      },
      {2, 3, 5});
  check_central_differences(run);
}

TEST_CASE("heads: refusals") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {1, 2, 12}}),
              rows = g.input("r", {DType::kF32, {2, 12}});
  const Norm norm = Norm::parse("rmsnorm");
  test::check_refused([&] { repeat_heads(net, x, 5, 2); },
                      "[heads] x: expected (batch, length, a multiple of 5)");
  test::check_refused([&] { repeat_heads(net, x, 2, 0); }, "[heads] times: expected 1 or more");
  test::check_refused([&] { norm_heads(net, "n", rows, 2, norm); }, "[heads] x: expected");
  test::check_refused([&] { norm_heads(net, "n", x, 0, norm); }, "[heads] x: expected");
}

}  // namespace
}  // namespace keel::nn
