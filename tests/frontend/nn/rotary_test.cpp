// The rotary embedding against its formula and its promises.
#include "frontend/nn/rotary.h"

#include "frontend/nn/layers.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

// x with rotated heads of this width, in float64 on the reference backend.
Tensor rotated(const Tensor& x, std::int64_t width, const RotaryOptions& options = {}) {
  Graph g;
  Net net{.graph = g, .dtype = DType::kF64};
  const Rotary rotary(net, x.shape()[1], width, options);
  g.mark_output("y", rotary(g.input("x", x.type())));
  Feeds feeds;
  feeds["x"] = x.clone();
  reference::ReferenceBackend backend;
  return std::move(run_graph(backend, g, feeds).at("y"));
}

TEST_CASE("rotary: the formula, element by element") {
  const Tensor x = test::random_normal({2, 4, 12}, 1);
  for (const std::int64_t first : {0, 5}) {
    const Tensor y = rotated(x, 6, {.first = first, .base = 100});
    REQUIRE(y.shape() == x.shape());
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t head = 0; head < 2; ++head) {
        for (std::int64_t i = 0; i < 3; ++i) {
          const double angle = double(first + row % 4) * std::pow(100.0, -double(i) / 3);
          const std::int64_t low = row * 12 + head * 6 + i, high = low + 3;
          CHECK(y.at(low) ==
                doctest::Approx(x.at(low) * std::cos(angle) - x.at(high) * std::sin(angle))
                    .epsilon(1e-13));
          CHECK(y.at(high) ==
                doctest::Approx(x.at(high) * std::cos(angle) + x.at(low) * std::sin(angle))
                    .epsilon(1e-13));
        }
      }
    }
  }
}

TEST_CASE("rotary: position 0 stays as it is, and no position changes a head's length") {
  const Tensor x = test::random_normal({1, 1, 8}, 2);
  test::check_close(rotated(x, 8), x, 0);
  const Tensor y = rotated(x, 4, {.first = 77});
  for (const std::int64_t head : {0, 4}) {
    double before = 0, after = 0;
    for (std::int64_t i = head; i < head + 4; ++i) {
      before += x.at(i) * x.at(i);
      after += y.at(i) * y.at(i);
    }
    CHECK(after == doctest::Approx(before).epsilon(1e-13));
  }
}

TEST_CASE("rotary: a score depends on the difference of positions only") {
  const Tensor q = test::random_normal({1, 1, 8}, 3), k = test::random_normal({1, 1, 8}, 4);
  const auto score = [&](std::int64_t query, std::int64_t key) {
    const Tensor a = rotated(q, 8, {.first = query}), b = rotated(k, 8, {.first = key});
    double sum = 0;
    for (std::int64_t i = 0; i < 8; ++i) sum += a.at(i) * b.at(i);
    return sum;
  };
  for (const std::int64_t difference : {0, 1, 9}) {
    const double expected = score(difference, 0);
    for (const std::int64_t key : {1, 40, 1000}) {
      CHECK(score(key + difference, key) == doctest::Approx(expected).epsilon(1e-11));
    }
  }
  CHECK(std::abs(score(9, 0) - score(1, 0)) > 1e-3);
}

TEST_CASE("rotary: gradients") {
  LayerRun run(
      [](Net& net, Value x) { return Rotary(net, 3, 4, {.first = 3})(linear(net, "fc", x, 8)); },
      {2, 3, 4});
  check_central_differences(run);
}

TEST_CASE("rotary: refusals") {
  Graph g;
  Net net{.graph = g};
  const Rotary rotary(net, 2, 4);
  for (const Shape& shape : {Shape{2, 4}, Shape{1, 3, 4}, Shape{1, 2, 6}}) {
    const Value x = g.input("x" + shape.text(), {DType::kF32, shape});
    test::check_refused([&] { rotary(x); },
                        "[rotary] x: expected (batch, 2, a multiple of 4), got");
  }
  for (const std::int64_t width : {0, 3}) {
    test::check_refused([&] { Rotary(net, 2, width); },
                        "[rotary] width: expected heads of an even width");
  }
  test::check_refused([&] { Rotary(net, 2, 4, {.base = 0}); },
                      "[rotary] base: expected a number > 0");
}

}  // namespace
}  // namespace keel::nn
