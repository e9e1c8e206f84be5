// Cases of products, convolutions, pooling and lookups.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/conv2d.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"

namespace keel::compare {
namespace {

Outputs small_matmul(CaseBuilder& d) {
  const Value a = d.normal({3, 17, 65}), b = d.normal({65, 33});
  return {ops::matmul(d.graph, a, b, {.bias = d.normal({33})}),
          ops::matmul(d.graph, d.normal({2, 9, 7}), d.normal({2, 5, 7}), {.transpose_b = true})};
}
Outputs large_matmul(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = d.normal({kManyRows, 37}), weight = d.normal({37, 19});
  const Value batches = d.normal({3, 37, 131}), turned = d.normal({3, 67, 131});
  const Value long_a = mixed(d, {4133, 17}), long_b = mixed(d, {4133, 5});
  const Value wide = d.normal({7, 19}), columns = d.normal({19, 1061});
  return {ops::matmul(g, many, weight, {.bias = d.normal({19})}),
          ops::matmul(g, batches, turned, {.transpose_b = true}),
          ops::matmul(g, long_a, long_b, {.transpose_a = true}), ops::matmul(g, wide, columns)};
}
// n rows, n products in a sum, and n columns.
Outputs sized_matmul(CaseBuilder& d, std::int64_t n) {
  Graph& g = d.graph;
  const Value rows = d.normal({n, 9}), inner = d.normal({7, n}), columns = d.normal({9, n});
  return {ops::matmul(g, rows, d.normal({9, 17}), {.bias = d.normal({17})}),
          ops::matmul(g, inner, d.normal({5, n}), {.transpose_b = true}),
          ops::matmul(g, d.normal({9, 3}), columns, {.bias = d.normal({n}), .transpose_a = true})};
}

Outputs small_conv2d(CaseBuilder& d) {
  const Value x = d.normal({2, 3, 9, 8}), w = d.normal({5, 3, 3, 3});
  return {ops::conv2d(d.graph, x, w, {.bias = d.normal({5}), .padding = 1})};
}
Outputs large_conv2d(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value x = d.normal({3, 19, 21, 18}), w = d.normal({37, 19, 3, 3});
  const Value few = mixed(d, {5, 3, 33, 31}), wide = d.normal({7, 3, 5, 5});
  return {ops::conv2d(g, x, w, {.bias = d.normal({37}), .padding = 1}),
          ops::conv2d(g, few, wide, {.stride = 2})};
}

using Pool = Value (*)(Graph&, Value, std::int64_t window, std::int64_t stride);
template <Pool kPool>
Outputs small_pool(CaseBuilder& d) {
  return {kPool(d.graph, d.normal({2, 3, 9, 8}), 3, 2)};
}
template <Pool kPool>
Outputs large_pool(CaseBuilder& d) {
  return {kPool(d.graph, mixed(d, {3, 19, 33, 31}), 3, 2),
          kPool(d.graph, d.normal({kManyRows, 1, 4, 4}), 2, 2)};
}

Outputs small_embedding(CaseBuilder& d) {
  return {ops::embedding(d.graph, d.normal({19, 16}), d.below({7, 6}, 19), 0)};
}
Outputs large_embedding(CaseBuilder& d) {
  return {ops::embedding(d.graph, d.normal({19, 5}), d.below({kManyRows}, 19), 0),
          ops::embedding(d.graph, d.normal({1061, 71}), d.below({37, 11}, 1061), 0)};
}

void small_embedding_bag(CaseBuilder& d) {
  d.mark({ops::embedding_bag(d.graph, d.normal({6, 19, 16}), d.below({7, 6}, 19))});
}
void large_embedding_bag(CaseBuilder& d) {
  d.mark({ops::embedding_bag(d.graph, d.normal({6, 19, 67}), d.below({521, 6}, 19)),
          ops::embedding_bag(d.graph, d.normal({3, 19, 5}), d.below({kManyRows, 3}, 19))});
}
void sized_embedding_bag(CaseBuilder& d, std::int64_t n) {
  for (const std::int64_t places : {1, 12}) {
    const Value ids = d.below({n > 1000 ? 5 : 100, places}, 17);
    d.mark({ops::embedding_bag(d.graph, d.normal({places, 17, n}), ids)});
  }
}

}  // namespace

const OpCaseTable& product_cases() {
  static const OpCaseTable table{
      {"matmul",
       {with_gradient<small_matmul>, with_gradient<large_matmul>, with_gradient<sized_matmul>}},
      {"conv2d", {with_gradient<small_conv2d>, with_gradient<large_conv2d>}},
      {"max_pool2d",
       {with_gradient<small_pool<ops::max_pool2d>>, with_gradient<large_pool<ops::max_pool2d>>}},
      {"avg_pool2d",
       {with_gradient<small_pool<ops::avg_pool2d>>, with_gradient<large_pool<ops::avg_pool2d>>}},
      {"embedding", {with_gradient<small_embedding>, with_gradient<large_embedding>}},
      {"embedding_bag", {small_embedding_bag, large_embedding_bag, sized_embedding_bag}}};
  return table;
}

}  // namespace keel::compare
