// Shapes: sizes, overflow, axes and broadcasting.
#include "src/core/shape.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("shape: rank, sizes, elements, strides and text") {
  const Shape s{2, 3, 4}, scalar;
  CHECK(s.rank() == 3);
  CHECK(s[0] == 2);
  CHECK(s[-1] == 4);
  CHECK(s.back() == 4);
  CHECK(s.elements() == 24);
  CHECK(s.elements(1, 3) == 12);
  CHECK(s.elements(1, 1) == 1);
  CHECK(s.strides()[0] == 12);
  CHECK(s.strides()[1] == 4);
  CHECK(s.strides()[2] == 1);
  CHECK(s.text() == "(2, 3, 4)");
  CHECK(s.with(1, 7) == Shape{2, 7, 4});
  CHECK(s.with(-1, 0).elements() == 0);
  CHECK(scalar.rank() == 0);
  CHECK(scalar.elements() == 1);
  CHECK(scalar.text() == "()");
  CHECK(scalar != Shape{1});
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.rank() == Shape::kMaxRank);
}

TEST_CASE("shape: refuses what is not a shape or not an axis") {
  check_refused([] { Shape{2, -1}; }, "shape: expected sizes >= 0, got -1");
  check_refused([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }, "shape: expected rank <= 8, got 9");
  const Shape s{2, 3};
  check_refused([&] { s[2]; }, "axis: expected one of 2 axes, got 2");
  check_refused([&] { s[-3]; }, "axis: expected one of 2 axes, got -3");
  check_refused([] { Shape{}.back(); }, "axis: expected one of 0 axes");
}

TEST_CASE("shape: products are checked") {
  constexpr std::int64_t kBig = std::int64_t{1} << 32;
  CHECK(checked_multiply(kBig, kBig / 4) == std::int64_t{1} << 62);
  CHECK(checked_multiply(INT64_MAX, 1) == INT64_MAX);
  CHECK(checked_multiply(INT64_MAX, 0) == 0);
  const auto refused = [](auto action) {
    check_refused(action, "size overflow", "", ErrorKind::kMemory);
  };
  refused([] { checked_multiply(kBig, kBig / 2); });
  refused([] { Shape{kBig, kBig}.elements(); });
  refused([] { Shape{1, kBig, kBig}.strides(); });
  refused([] { TensorType{DType::kF64, {std::int64_t{1} << 60}}.bytes(); });
}

TEST_CASE("shape: broadcasting") {
  struct Row {
    Shape a, b, result;
  };
  const Row rows[] = {{{}, {}, {}},
                      {{3}, {}, {3}},
                      {{2, 3}, {3}, {2, 3}},
                      {{2, 1}, {3}, {2, 3}},
                      {{4, 1, 3}, {2, 1}, {4, 2, 3}},
                      {{1}, {0}, {0}},
                      {{1, 1, 1}, {5}, {1, 1, 5}}};
  for (const auto& [a, b, result] : rows) {
    CAPTURE(a.text());
    CAPTURE(b.text());
    CHECK(broadcast(a, b) == result);
    CHECK(broadcast(b, a) == result);
  }
  check_refused([] { broadcast({2, 3}, {2}); }, "cannot broadcast (2, 3) with (2)");
  check_refused([] { broadcast({2}, {0}); }, "cannot broadcast (2) with (0)");
}

}  // namespace
}  // namespace keel::test
