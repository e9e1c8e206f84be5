// The gradient of a table as rows: ids in groups, and sums over them.
#include "src/ops/row_gradient.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"

namespace keel::test {
namespace {

// The outputs of group_ids: y0 order, y1 unique, y2 begins.
Results grouped(Tensor ids, const GroupIdsAttrs& attrs) {
  OpCase c;
  c.inputs.push_back(std::move(ids));
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value groups = g.add(kGroupIds, {v[0]}, attrs);
    return std::vector{groups, groups.at(1), groups.at(2)};
  };
  return run_reference(c);
}

void check_groups(const Results& got, const Tensor& order, const Tensor& unique,
                  const Tensor& begins) {
  check_close(got.at("y0"), order, 0);
  check_close(got.at("y1"), unique, 0);
  check_close(got.at("y2"), begins, 0);
}

TEST_CASE("group_ids: ids ascend, equal ones stay in order, and what gives no gradient is last") {
  check_groups(grouped(i32({7}, {2, 0, 2, 9, 1, -5, 2}), {.vocabulary = 3}),
               i32({7}, {1, 4, 0, 2, 6, 3, 5}), i32({7}, {0, 1, 2, 3, 3, 3, 3}),
               i32({8}, {0, 1, 2, 5, 5, 5, 5, 5}));
  check_groups(grouped(i32({2, 2}, {1, 3, 1, 0}), {.padding_id = 1, .vocabulary = 4}),
               i32({4}, {3, 1, 0, 2}), i32({4}, {0, 3, 4, 4}), i32({5}, {0, 1, 2, 2, 2}));
}

TEST_CASE("group_ids: one id, equal ids, padding alone and no ids at all") {
  check_groups(grouped(i32({}, {6}), {.vocabulary = 7}), i32({1}, {0}), i32({1}, {6}),
               i32({2}, {0, 1}));
  check_groups(grouped(i32({3}, {4, 4, 4}), {.vocabulary = 7}), i32({3}, {0, 1, 2}),
               i32({3}, {4, 7, 7}), i32({4}, {0, 3, 3, 3}));
  check_groups(grouped(i32({2}, {4, 4}), {.padding_id = 4, .vocabulary = 7}), i32({2}, {0, 1}),
               i32({2}, {7, 7}), i32({3}, {0, 0, 0}));
  check_groups(grouped(Tensor(DType::kI32, {0}), {.vocabulary = 7}), Tensor(DType::kI32, {0}),
               Tensor(DType::kI32, {0}), i32({1}, {0}));
}

TEST_CASE("sum_groups: a row for each id, and 0 after the last") {
  OpCase c;
  c.inputs.push_back(i32({2, 2}, {5, 2, 5, 9}));
  c.inputs.push_back(f64({2, 2, 2}, {1, 2, 3, 4, 10, 20, 7, 7}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const ParameterGradient d = ops::row_gradient(g, v[0], v[1], {.vocabulary = 6});
    CHECK(d.is_rows());
    return std::vector<Value>{d, d.ids};
  };
  const Results got = run_reference(c);
  check_close(got.at("y0"), f64({4, 2}, {3, 4, 11, 22, 0, 0, 0, 0}));
  check_close(got.at("y1"), i32({4}, {2, 5, 6, 6}), 0);
}

TEST_CASE("row gradients: refusals") {
  const auto group = [](const GroupIdsAttrs& attrs) {
    return [attrs](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kGroupIds, v, attrs)};
    };
  };
  const Build sum = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kSumGroups, v)};
  };
  const TensorType ids{DType::kI32, {3}}, ends{DType::kI32, {4}}, dy{DType::kF32, {3, 2}};
  check_op_refused({dy}, group({}), "group_ids", "ids: expected i32, got f32");
  check_op_refused({ids}, group({.vocabulary = -1}), "group_ids",
                   "vocabulary: expected 0 to 2147483646, got -1");
  check_op_refused({ids}, group({.vocabulary = std::int64_t{1} << 31}), "group_ids",
                   "vocabulary: expected 0 to 2147483646");
  check_op_refused({ids, ids, ends}, sum, "sum_groups", "dy: expected a floating");
  check_op_refused({dy, ends, ends}, sum, "sum_groups", "order: expected (3), got (4)");
  check_op_refused({dy, ids, ids}, sum, "sum_groups", "begins: expected (4), got (3)");
  check_op_refused({dy, dy, ends}, sum, "sum_groups", "order: expected i32");
}

}  // namespace
}  // namespace keel::test
