// Ops that move elements: exactly what the reference backend gives.
#include "src/ops/layout.h"

#include <algorithm>
#include <numeric>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

using Sizes = std::vector<std::int64_t>;

// Consecutive numbers of a type: no element can be taken for another (modulo 251 for bytes).
Tensor numbered(DType dtype, const Shape& shape) {
  Tensor x(DType::kF64, shape);
  std::int64_t i = 0;
  for (double& value : x.as<double>()) value = double(dtype == DType::kU8 ? i++ % 251 : i++);
  return is_floating(dtype) ? std::move(x) : x.to(dtype);
}

// CHECKs one op on elements of four bytes and of one. Gradients are moved too, unless the op reads
// an element twice; then `gradient_bound` is what adding them up may be off.
void check_moves(const Shape& shape, const std::function<Value(Graph&, Value)>& op,
                 double gradient_bound = 0) {
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kU8}) {
    OpCase c;
    c.inputs.push_back(numbered(dtype, shape));
    c.build = [&op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0])}; };
    c.gradients = dtype == DType::kF32;
    const Results got = run_tested(c), expected = run_reference(c);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      check_within(got.at(name), value, [&](auto) { return name == "d0" ? gradient_bound : 0.0; });
    }
  }
}

TEST_CASE("backend layout: every permutation of axes") {
  for_each_target([] {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{3, 1, 70, 6}, Shape{2, 67, 1, 9}}) {
      Sizes axes{0, 1, 2, 3};
      do {
        CAPTURE(shape.text());
        CAPTURE(attr_text(axes));
        check_moves(shape, [&](Graph& g, Value x) { return ops::transpose(g, x, axes); });
      } while (std::ranges::next_permutation(axes).found);
    }
  });
}

TEST_CASE("backend layout: transposed matrices of every size" * doctest::test_suite("slow")) {
  for_each_target([] {
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 63, 64, 65, 130}) {
      for (const std::int64_t columns : {1, 4, 7, 64, 129, 1025}) {
        CAPTURE(rows);
        CAPTURE(columns);
        check_moves({rows, columns}, [](Graph& g, Value x) {
          return ops::transpose(g, x, {1, 0});
        });
      }
    }
  });
}

TEST_CASE("backend layout: slices") {
  struct Row {
    Shape shape;
    Sizes starts, sizes;
  };
  for (const Row& row : {Row{{10}, {3}, {4}}, Row{{5, 6}, {1, 0}, {3, 6}},
                         Row{{5, 6}, {0, 2}, {5, 1}}, Row{{4, 5, 6}, {1, 2, 3}, {2, 2, 2}},
                         Row{{4, 5, 6}, {1, 0, 0}, {1, 5, 6}}, Row{{3, 4}, {1, 1}, {0, 2}},
                         Row{{300, 400}, {10, 20}, {280, 370}}, Row{{100000}, {1}, {99990}}}) {
    CAPTURE(row.shape.text());
    check_moves(row.shape,
                [&](Graph& g, Value x) { return ops::slice(g, x, row.starts, row.sizes); });
  }
}

TEST_CASE("backend layout: parts") {
  for_each_target([] {
    for (const Shape& shape : {Shape{6}, Shape{6, 5}, Shape{6, 1, 7}, Shape{6, 64}, Shape{6, 0}}) {
      for (const std::int64_t parts : {1, 2, 3, 6}) {
        CAPTURE(shape.text());
        CAPTURE(parts);
        check_moves(shape, [&](Graph& g, Value x) {
          std::vector<Value> all = ops::split(g, x, parts);
          std::ranges::reverse(all);
          return ops::concat(g, all, 1 % g.shape(x).rank());
        });
      }
    }
  });
}

TEST_CASE("backend layout: padding") {
  struct Row {
    Shape shape;
    Sizes before, after;
    double value;
  };
  for (const Row& row :
       {Row{{3}, {2}, {1}, 5}, Row{{3, 4}, {1, 0}, {2, 0}, 7}, Row{{3, 4}, {0, 2}, {0, 3}, 0},
        Row{{2, 3, 4}, {1, 0, 2}, {0, 2, 1}, 9}, Row{{2, 3, 5, 5}, {0, 0, 1, 1}, {0, 0, 1, 1}, 0},
        Row{{2, 3}, {0, 0}, {0, 0}, 1}, Row{{0, 3}, {2, 1}, {1, 0}, 4},
        Row{{300, 200}, {3, 5}, {1, 7}, 3}}) {
    CAPTURE(row.shape.text());
    check_moves(row.shape, [&](Graph& g, Value x) {
      return ops::pad(g, x, row.before, row.after, row.value);
    });
  }
}

TEST_CASE("backend layout: joined parts") {
  for (const int axis : {0, 1, 2}) {
    for (const std::int64_t size : {1, 5, 200}) {
      const auto join = [&](Graph& g, Value x) {
        const Value thin = ops::slice_axis(g, x, axis, 0, 1);
        return ops::concat(g, {x, thin, x, ops::slice_axis(g, x, axis, 0, 0)}, axis);
      };
      // Three numbers below 5 are added.
      check_moves(Shape{3, 4, 5}.with(axis, size), join, 2 * kEps * 15);
    }
  }
}

}  // namespace
}  // namespace keel::test
