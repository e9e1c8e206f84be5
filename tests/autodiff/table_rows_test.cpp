// Which tables have gradients as rows, and how those of several lookups are joined.
#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// A table (10, 3), and ids of two lookups.
struct Lookups {
  Graph g;
  Value table = g.parameter("words/table", {DType::kF32, {10, 3}}, {});
  Value few = g.input("few", {DType::kI32, {2}}), more = g.input("more", {DType::kI32, {3}});

  Value look_up(Value ids, const char* name, Value in = {}) {
    const auto scope = g.scope(name);
    return ops::embedding(g, in.valid() ? in : table, ids);
  }
  ParameterGradient gradient_of(Value loss, const RowChoice& choice = {}) {
    return differentiate_by_rows(g, loss, {&table, 1}, choice).of[0];
  }
  // The gradient of the sum of these values' squares.
  ParameterGradient gradient_of(std::initializer_list<Value> values, const RowChoice& choice = {}) {
    Value loss;
    for (Value y : values) {
      const Value sum = ops::sum(g, ops::square(g, y));
      loss = loss.valid() ? ops::add(g, loss, sum) : sum;
    }
    return gradient_of(loss, choice);
  }
};

TEST_CASE("gradient by rows: one lookup has a row for each id") {
  Lookups l;
  const ParameterGradient d = l.gradient_of({l.look_up(l.few, "embed")});
  REQUIRE(d.is_rows());
  CHECK(l.g.shape(d) == Shape{2, 3});
  CHECK(l.g.shape(d.ids) == Shape{2});
  CHECK(l.g.node(d).name == "embed/embedding.backward/sum_groups");
  CHECK(l.g.node(d.ids).attrs.as<GroupIdsAttrs>().vocabulary == 10);
}

TEST_CASE("gradient by rows: several lookups are joined, the last one first") {
  Lookups l;
  const Value a = l.look_up(l.few, "a"), b = l.look_up(l.more, "b");
  const ParameterGradient d = l.gradient_of({a, b});
  REQUIRE(d.is_rows());
  CHECK(l.g.shape(d) == Shape{5, 3});
  CHECK(l.g.node(d).name == "words/table.backward/sum_groups");
  const Node& joined = l.g.node(l.g.node(d).inputs[SumGroupsInput::kDy]);
  CHECK(l.g.node(joined.inputs[0]).name == "b/embedding.backward/sum_groups");
  CHECK(l.g.node(joined.inputs[1]).name == "a/embedding.backward/sum_groups");
}

TEST_CASE("gradient by rows: padding of a lookup stays its own") {
  Lookups l;
  const Value a = ops::embedding(l.g, l.table, l.few, 4), b = l.look_up(l.more, "b");
  const ParameterGradient d = l.gradient_of({a, b});
  const Node& groups = l.g.node(d.ids);
  CHECK(groups.attrs.as<GroupIdsAttrs>().padding_id == -1);
  const Node& joined = l.g.node(groups.inputs[0]);
  CHECK(l.g.node(joined.inputs[0]).attrs.as<GroupIdsAttrs>().padding_id == -1);
  CHECK(l.g.node(joined.inputs[1]).attrs.as<GroupIdsAttrs>().padding_id == 4);
}

TEST_CASE("gradient by rows: a table with few rows for its ids has a whole gradient") {
  Lookups l;
  const Value a = l.look_up(l.few, "a"), b = l.look_up(l.more, "b");
  CHECK(l.gradient_of({a, b}, {.least_rows_per_id = 2}).is_rows());
  const ParameterGradient whole = l.gradient_of({a, b}, {.least_rows_per_id = 2.01});
  CHECK_FALSE(whole.is_rows());
  CHECK(l.g.shape(whole) == Shape{10, 3});
}

TEST_CASE("gradient by rows: what else reads the table makes its gradient whole") {
  Lookups tied;
  const Value y = tied.look_up(tied.few, "a");
  const Value logits = ops::matmul(tied.g, y, tied.table, {.transpose_b = true});
  CHECK_FALSE(tied.gradient_of({logits}).is_rows());

  Lookups read;  // by a node that the loss does not depend on
  const Value x = read.look_up(read.few, "a");
  ops::square(read.g, read.table);
  CHECK_FALSE(read.gradient_of({x}).is_rows());
}

TEST_CASE("gradient by rows: absent without a lookup, and whole for a table that is computed") {
  Lookups l;
  const Value other = l.g.parameter("other", {DType::kF32, {4}}, {});
  CHECK_FALSE(l.gradient_of({other}).valid());
  CHECK_FALSE(l.gradient_of({other}).is_rows());

  Lookups computed;
  const Value half = ops::scale(computed.g, computed.table, 0.5);
  const Value y = computed.look_up(computed.few, "a", half);
  const Value loss = ops::sum(computed.g, y);
  const std::vector<Value> wrt{half, computed.table};
  for (const ParameterGradient& d : differentiate_by_rows(computed.g, loss, wrt).of) {
    CHECK(d.valid());
    CHECK_FALSE(d.is_rows());
  }
}

}  // namespace
}  // namespace keel::test
