// Embedding lookup.
#include "src/ops/embedding.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase lookup_of(Tensor table, Tensor ids, std::int64_t padding_id = -1) {
  OpCase c;
  c.inputs.push_back(std::move(table));
  c.inputs.push_back(std::move(ids));
  c.build = [padding_id](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding(g, v[0], v[1], padding_id)};
  };
  return c;
}

TEST_CASE("embedding: rows by number; padding gives 0, an unknown id gives NaN") {
  const double nan = std::nan("");
  OpCase c = lookup_of(f64({3, 2}, {1, 2, 3, 4, 5, 6}), i32({2, 3}, {2, 0, 2, 1, 3, -1}), 1);
  c.gradients = false;
  check_close(run_reference(c).at("y0"),
              f64({2, 3, 2}, {5, 6, 1, 2, 5, 6, 0, 0, nan, nan, nan, nan}));
  c = lookup_of(f64({3, 1}, {1, 2, 3}), i32({}, {-1}));
  c.gradients = false;
  check_close(run_reference(c).at("y0"), f64({1}, {nan}));
}

TEST_CASE("embedding: gradients with repeated ids, padding and several shapes of ids") {
  gradcheck(lookup_of(random_normal({4, 3}, 1), i32({5}, {1, 1, 3, 0, 1})));
  gradcheck(lookup_of(random_normal({4, 3}, 1), i32({2, 2}, {2, 0, 2, 2}), 0));
  gradcheck(lookup_of(random_normal({2, 1}, 1), i32({}, {1})));
}

TEST_CASE("embedding: repeated ids add up; padding and unknown ids give no gradient") {
  OpCase c;
  c.inputs.push_back(f64({3, 1}, {1, 2, 3}));
  c.inputs.push_back(i32({7}, {2, 0, 2, 9, 1, -5, 2}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value y = ops::embedding(g, v[0], v[1], 1);
    return gradient(g, ops::sum(g, y), std::vector{v[0]});
  };
  check_close(run_reference(c).at("y0"), f64({3, 1}, {1, 0, 3}));
}

TEST_CASE("embedding: two lookups in one table add up") {
  OpCase c;
  c.inputs.push_back(random_normal({3, 2}, 1));
  c.inputs.push_back(i32({2}, {0, 2}));
  c.inputs.push_back(i32({1}, {2}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding(g, v[0], v[1]), ops::embedding(g, v[0], v[2])};
  };
  gradcheck(c);
}

TEST_CASE("embedding: refusals") {
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding(g, v[0], v[1])};
  };
  const TensorType table{DType::kF32, {4, 3}}, ids{DType::kI32, {2}};
  check_op_refused({{DType::kF32, {4}}, ids}, build, "embedding",
                   "table: expected (vocabulary, width), got (4)");
  check_op_refused({{DType::kI32, {4, 3}}, ids}, build, "embedding", "table: expected a floating");
  check_op_refused({table, table}, build, "embedding", "ids: expected i32, got f32");
  check_op_refused(
      {ids, {DType::kF32, {3, 3}}},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{g.add(kEmbeddingBackward, v, EmbeddingBackwardAttrs{-1, 4})};
      },
      "embedding_backward", "dy: expected (2, 3), got (3, 3)");
}

}  // namespace
}  // namespace keel::test
