// Lookups that are added up.
#include "src/ops/embedding_bag.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase embedding_bag_of(Tensor tables, Tensor ids, std::int64_t first = 0) {
  OpCase c;
  c.inputs.push_back(std::move(tables));
  c.inputs.push_back(std::move(ids));
  c.gradients = false;
  c.build = [first](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding_bag(g, v[0], v[1], first)};
  };
  return c;
}

TEST_CASE("embedding_bag: rows of each place's own table; an unknown id gives NaN") {
  const double nan = std::nan("");
  const auto tables = [] { return f64({2, 3, 1}, {1, 2, 3, 10, 20, 30}); };
  check_close(run_reference(embedding_bag_of(tables(), i32({3, 2}, {0, 2, 2, 0, 1, 1}))).at("y0"),
              f64({3, 1}, {31, 13, 22}));
  check_close(
      run_reference(embedding_bag_of(tables(), i32({4, 2}, {5, 7, 4, 5, 5, 8, 7, 7}), 5)).at("y0"),
      f64({4, 1}, {31, nan, nan, 33}));
  check_close(
      run_reference(embedding_bag_of(f64({1, 2, 2}, {1, 2, 3, 4}), i32({1, 1}, {1}))).at("y0"),
      f64({1, 2}, {3, 4}));
}

TEST_CASE("embedding_bag: products of a table's rows are those of what was looked up") {
  constexpr std::int64_t kPlaces = 3, kWidth = 4, kUnits = 5;
  OpCase c;
  c.inputs.push_back(random_normal({6, kWidth}, 1));
  c.inputs.push_back(random_normal({kPlaces * kWidth, kUnits}, 2));
  c.inputs.push_back(i32({2, kPlaces}, {2, 5, 2, 3, 3, 4}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value x = ops::reshape(g, ops::embedding(g, v[0], v[2]), {2, kPlaces * kWidth});
    const Value part =
        ops::broadcast_to(g, ops::slice_axis(g, v[0], 0, 2, 4), {kPlaces, 4, kWidth});
    const Value tables = ops::matmul(g, part, ops::reshape(g, v[1], {kPlaces, kWidth, kUnits}));
    return std::vector{ops::matmul(g, x, v[1]), ops::embedding_bag(g, tables, v[2], 2)};
  };
  const Results results = run_reference(c);
  check_close(results.at("y1"), results.at("y0"));
}

TEST_CASE("embedding_bag: refusals") {
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding_bag(g, v[0], v[1])};
  };
  const TensorType tables{DType::kF32, {2, 4, 3}}, ids{DType::kI32, {5, 2}};
  const auto refused = [&](const TensorType& t, const TensorType& i, const char* part) {
    check_op_refused({t, i}, build, "embedding_bag", part);
  };
  refused({DType::kF32, {4, 3}}, ids, "tables: expected (places, vocabulary, width), got (4, 3)");
  refused({DType::kI32, {2, 4, 3}}, ids, "tables: expected a floating");
  refused({DType::kF32, {0, 4, 3}}, {DType::kI32, {5, 0}}, "tables: expected 1 place or more");
  refused(tables, {DType::kF32, {5, 2}}, "ids: expected i32, got f32");
  refused(tables, {DType::kI32, {5, 3}}, "ids: expected (rows, 2), got (5, 3)");
  refused(tables, {DType::kI32, {2}}, "ids: expected (rows, 2), got (2)");
}

}  // namespace
}  // namespace keel::test
