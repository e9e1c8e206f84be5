// Cases of attention of every kind.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/attention.h"
#include "src/ops/attention_window.h"
#include "src/ops/elementwise.h"
#include "src/ops/multilinear_attention.h"
#include "src/ops/relative_attention.h"

namespace keel::compare {
namespace {

Outputs small_attention(CaseBuilder& d) {
  const Value q = d.normal({2, 9, 16}), k = d.normal({2, 11, 16}), v = d.normal({2, 11, 16});
  const RandomKey key = key_of(d);
  return {ops::attention(d.graph, {q, k, v, d.mask({2, 11}), key.step, key.first_row},
                         {.heads = 4, .p = 0.2, .seed = 1})};
}
// Several tiles of queries and of keys, more than 4,096 keys, and scores of about 100.
Outputs large_attention(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value q = d.normal({2, 37, 16}), k = d.normal({2, 301, 16}), v = d.normal({2, 301, 16});
  const RandomKey key = key_of(d);
  const Value many = ops::attention(g, {q, k, v, d.mask({2, 301}), key.step, key.first_row},
                                    {.heads = 2, .p = 0.2, .seed = 1});
  const Value long_k = d.normal({1, 4133, 5}), long_v = d.normal({1, 4133, 5});
  const Value one = ops::attention(g, {d.normal({1, 3, 5}), long_k, long_v}, {.heads = 1});
  const auto large = [&] { return ops::scale(g, d.normal({1, 133, 40}), 8); };
  const Value hard_q = large(), hard_k = large();
  const Value hard =
      ops::attention(g, {hard_q, hard_k, d.normal({1, 133, 40})}, {.heads = 1, .causal = true});
  return {many, one, hard};
}

// A memory of 4, of which each row has another part, and fewer distances than keys.
Outputs small_relative_attention(CaseBuilder& d) {
  const Value q = d.normal({2, 9, 16}), k = d.normal({2, 13, 16}), v = d.normal({2, 13, 16});
  const Value p = d.normal({8, 16}), u = d.normal({16}), w = d.normal({16});
  return {ops::relative_attention(d.graph, {q, k, v, p, u, w, d.below({2}, 5)},
                                  {.heads = 4, .window = 7})};
}
// Several tiles of queries, keys and distances; a key for every distance, and fewer of them; a
// window; more than 4,096 keys; and scores of about 100.
Outputs large_relative_attention(CaseBuilder& d) {
  Graph& g = d.graph;
  const auto operands = [&](const Shape& q, std::int64_t keys, std::int64_t distances,
                            double size) {
    const Shape k{q[0], keys, q[2]};
    const auto normal = [&](const Shape& shape) { return ops::scale(g, d.normal(shape), size); };
    return ops::RelativeAttentionOperands{normal(q),
                                          normal(k),
                                          d.normal(k),
                                          normal({distances, q[2]}),
                                          normal({q[2]}),
                                          normal({q[2]}),
                                          d.below({q[0]}, keys - q[1] + 1)};
  };
  return {ops::relative_attention(g, operands({2, 37, 16}, 301, 301, 1), {.heads = 2}),
          ops::relative_attention(g, operands({3, 70, 5}, 133, 40, 1), {.heads = 1, .window = 60}),
          ops::relative_attention(g, operands({1, 3, 5}, 4133, 40, 1), {.heads = 1}),
          ops::relative_attention(g, operands({1, 133, 40}, 150, 150, 4), {.heads = 1})};
}

// b sequences of n positions, of the given rank and number of features.
ops::MultilinearOperands multilinear_operands(CaseBuilder& d, std::int64_t b, std::int64_t n,
                                              std::int64_t rank, std::int64_t features) {
  return {d.normal({b, n, rank}), d.normal({b, n, rank}), d.normal({b, n, rank}),
          d.normal({n, rank}),    d.normal({b, n, rank}), d.normal({n * n, features})};
}
Outputs small_multilinear(CaseBuilder& d) {
  const ops::MultilinearOperands all = multilinear_operands(d, 3, 5, 6, 7);
  return {ops::multilinear_attention(d.graph, all),
          ops::multilinear_attention(d.graph, all, {.causal = false})};
}
// One attention has more sequences than a task has queries, one has few, and one has hard numbers.
Outputs large_multilinear(CaseBuilder& d) {
  Graph& g = d.graph;
  ops::MultilinearOperands hard = multilinear_operands(d, 9, 6, 5, 11);
  hard.k = mixed(d, {9, 6, 5}), hard.out = mixed(d, {36, 11});
  return {ops::multilinear_attention(g, multilinear_operands(d, 19, 13, 17, 37)),
          ops::multilinear_attention(g, multilinear_operands(d, 2, 21, 9, 67)),
          ops::multilinear_attention(g, multilinear_operands(d, 412, 10, 3, 5)),
          ops::multilinear_attention(g, hard, {.causal = false})};
}

Outputs small_attention_window(CaseBuilder& d) {
  const Value components = d.normal({5, 12}), before = d.normal({5, 4});
  const auto window = ops::attention_window(d.graph, components, before, d.below({5, 19}, 7), 7);
  return {window.w, window.kappa, window.phi};
}
// Bumps that reach the last symbols of a long text.
Outputs large_attention_window(CaseBuilder& d) {
  const Value components = d.normal({61, 30}),
              before = ops::scale(d.graph, d.positive({61, 10}), 20);
  const auto many = ops::attention_window(d.graph, d.normal({kManyRows, 3}),
                                          d.normal({kManyRows, 1}), d.below({kManyRows, 3}, 5), 5);
  const auto wide = ops::attention_window(d.graph, components, before, d.below({61, 67}, 37), 37);
  return {many.w, many.kappa, many.phi, wide.w, wide.kappa, wide.phi};
}

}  // namespace

const OpCaseTable& attention_cases() {
  static const OpCaseTable table{
      {"attention", {with_gradient<small_attention>, with_gradient<large_attention>}},
      {"relative_attention",
       {with_gradient<small_relative_attention>, with_gradient<large_relative_attention>}},
      {"multilinear_attention",
       {with_gradient<small_multilinear>, with_gradient<large_multilinear>}},
      {"attention_window",
       {with_gradient<small_attention_window>, with_gradient<large_attention_window>}}};
  return table;
}

}  // namespace keel::compare
