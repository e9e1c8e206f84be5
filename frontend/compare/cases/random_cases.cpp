// Cases of the ops that draw random numbers, and of those of searches.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/dropout.h"
#include "src/ops/norm_noise.h"
#include "src/ops/random_normal.h"
#include "src/ops/search.h"

namespace keel::compare {
namespace {

Outputs small_dropout(CaseBuilder& d) {
  return {ops::dropout(d.graph, d.normal({9, 33}), key_of(d), 0.3, 1)};
}
Outputs large_dropout(CaseBuilder& d) {
  return {ops::dropout(d.graph, d.normal({kManyRows, 19}), key_of(d), 0.3, 1),
          ops::dropout(d.graph, mixed(d, {5, 16421}), key_of(d), 0.1, 2)};
}

Value noise_of(CaseBuilder& d, Value x, Value mask, std::int64_t seed) {
  return ops::norm_noise(d.graph, x, {key_of(d), mask}, {.seed = seed});
}
Outputs small_norm_noise(CaseBuilder& d) { return {noise_of(d, d.normal({9, 16}), {}, 1)}; }
Outputs large_norm_noise(CaseBuilder& d) {
  return {noise_of(d, d.normal({kManyRows, 19}), {}, 1), noise_of(d, mixed(d, {37, 1061}), {}, 2)};
}
Outputs sized_norm_noise(CaseBuilder& d, std::int64_t n) {
  Outputs all{noise_of(d, d.normal({n, 3}), {}, 1), noise_of(d, d.normal({4, n}), d.mask({4}), 2)};
  if (n < 5000) all.push_back(noise_of(d, d.normal({2, n, 3, 3}), {}, -7));
  return all;
}

void mark_normal(CaseBuilder& d, const Shape& shape, std::int64_t seed) {
  d.mark({ops::random_normal(d.graph, {DType::kF32, shape}, key_of(d), seed)});
}
void small_random_normal(CaseBuilder& d) { mark_normal(d, {9, 33}, 1); }
void large_random_normal(CaseBuilder& d) {
  mark_normal(d, {kManyRows, 19}, 1);
  mark_normal(d, {3, 16421}, 2);
}
void sized_random_normal(CaseBuilder& d, std::int64_t n) {
  mark_normal(d, {3, n}, -7);
  mark_normal(d, {n}, 1);
  if (n < 5000) mark_normal(d, {n, 3, 3}, 2);
}

void mark_top(CaseBuilder& d, Value x, std::int64_t k) {
  const ops::Ranked ranked = ops::top_k(d.graph, x, k);
  d.mark({ranked.values, ranked.indices});
}
void small_top_k(CaseBuilder& d) { mark_top(d, d.normal({9, 33}), 5); }
void large_top_k(CaseBuilder& d) {
  mark_top(d, d.normal({kManyRows, 19}), 5);
  mark_top(d, mixed(d, {37, 1061}), 17);
  mark_top(d, hostile(d), 3);
}
void sized_top_k(CaseBuilder& d, std::int64_t n) {
  for (const std::int64_t k : {1, 2, 10}) {
    if (k <= n) mark_top(d, d.normal({n > 1000 ? 3 : 40, n}), k);
  }
}

void mark_scattered(CaseBuilder& d, const Shape& memory, std::int32_t place) {
  const Value t = d.graph.constant(Tensor::of<std::int32_t>({}, {place}));
  const Value x = d.normal({memory[0], 1, memory[2]});
  d.mark({ops::scatter(d.graph, d.normal(memory), x, t)});
}
void small_scatter(CaseBuilder& d) { mark_scattered(d, {4, 7, 16}, 3); }
void large_scatter(CaseBuilder& d) { mark_scattered(d, {37, 131, 19}, 130); }

}  // namespace

const OpCaseTable& random_cases() {
  static const OpCaseTable table{
      {"dropout", {with_gradient<small_dropout>, with_gradient<large_dropout>}},
      {"norm_noise",
       {with_gradient<small_norm_noise>, with_gradient<large_norm_noise>,
        with_gradient<sized_norm_noise>}},
      {"random_normal", {small_random_normal, large_random_normal, sized_random_normal}},
      {"top_k", {small_top_k, large_top_k, sized_top_k}},
      {"scatter", {small_scatter, large_scatter}}};
  return table;
}

}  // namespace keel::compare
