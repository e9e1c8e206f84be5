// Cases of the ops that move elements or reduce them.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"

namespace keel::compare {
namespace {

template <Value (*kReduce)(Graph&, Value, std::vector<std::int64_t>, bool)>
Outputs small_reduce(CaseBuilder& d) {
  const Value x = d.normal({5, 7, 33});
  return {kReduce(d.graph, x, {0, 2}, false), kReduce(d.graph, x, {1}, true)};
}
// Long columns, columns of more than a chunk, one long row, and axes that are not adjacent.
template <Value (*kReduce)(Graph&, Value, std::vector<std::int64_t>, bool)>
Outputs large_reduce(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = d.normal({kManyRows, 37}), wide = mixed(d, {67, 2085});
  return {kReduce(g, many, {0}, false), kReduce(g, many, {1}, true), kReduce(g, wide, {0}, false),
          kReduce(g, d.normal({70001}), {0}, false),
          kReduce(g, d.normal({3, 37, 131}), {0, 2}, false)};
}
template <Value (*kReduce)(Graph&, Value, std::vector<std::int64_t>, bool)>
Outputs sized_reduce(CaseBuilder& d, std::int64_t n) {
  Graph& g = d.graph;
  const Value wide = d.normal({3, n}), tall = d.normal({n, n < 5000 ? 17 : 3});
  return {kReduce(g, wide, {1}, false), kReduce(g, wide, {0}, false), kReduce(g, tall, {0}, false),
          kReduce(g, d.normal({n}), {0}, false)};
}
Outputs large_max(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = mixed(d, {kManyRows, 19});
  return {ops::max(g, many, {1}), ops::max(g, many, {0}), ops::max(g, hostile(d), {1}),
          ops::max(g, d.normal({3, 37, 131}), {1})};
}

Outputs small_broadcast(CaseBuilder& d) {
  return {ops::broadcast_to(d.graph, d.normal({5, 1, 33}), {5, 7, 33})};
}
Outputs large_broadcast(CaseBuilder& d) {
  Graph& g = d.graph;
  return {ops::broadcast_to(g, d.normal({kManyRows, 1, 3}), {kManyRows, 7, 3}),
          ops::broadcast_to(g, d.normal({37}), {1061, 37}),
          ops::broadcast_to(g, d.normal({1061, 1}), {1061, 19})};
}
Outputs sized_broadcast(CaseBuilder& d, std::int64_t n) {
  Graph& g = d.graph;
  return {ops::broadcast_to(g, d.normal({n}), {3, n}),
          ops::broadcast_to(g, d.normal({3, 1}), {3, n}),
          ops::broadcast_to(g, d.normal({2, 1, 1}), {2, 3, n})};
}

Outputs small_transpose(CaseBuilder& d) {
  return {ops::transpose(d.graph, d.normal({5, 7, 33}), {2, 0, 1})};
}
Outputs large_transpose(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value images = d.normal({131, 67, 5});
  return {ops::transpose(g, d.normal({kManyRows, 19}), {1, 0}),
          ops::transpose(g, images, {2, 0, 1}), ops::transpose(g, images, {1, 0, 2}),
          ops::transpose(g, images, {0, 2, 1})};
}

Outputs small_slice(CaseBuilder& d) {
  return {ops::slice(d.graph, d.normal({9, 7}), {2, 1}, {5, 4})};
}
Outputs large_slice(CaseBuilder& d) {
  return {ops::slice(d.graph, d.normal({kManyRows, 19}), {7, 2}, {4111, 13}),
          ops::slice(d.graph, d.normal({37, 67, 19}), {1, 0, 2}, {35, 67, 16})};
}

// The parts have 5 numbers each, too few to remain views of the input.
Outputs small_split(CaseBuilder& d) { return ops::split(d.graph, d.normal({6, 5}), 3); }
Outputs large_split(CaseBuilder& d) { return ops::split(d.graph, d.normal({3 * kManyRows, 5}), 3); }

Outputs small_concat(CaseBuilder& d) {
  return {ops::concat(d.graph, {d.normal({3, 5}), d.normal({3, 8})}, 1)};
}
Outputs large_concat(CaseBuilder& d) {
  return {ops::concat(d.graph, {d.normal({kManyRows, 5}), d.normal({kManyRows, 8})}, 1),
          ops::concat(d.graph, {d.normal({1061, 19}), d.normal({kManyRows, 19})}, 0)};
}

Outputs small_pad(CaseBuilder& d) {
  return {ops::pad(d.graph, d.normal({3, 5}), {1, 0}, {2, 3}, 0.5)};
}
Outputs large_pad(CaseBuilder& d) {
  return {ops::pad(d.graph, d.normal({kManyRows, 5}), {1, 0}, {2, 3}, 0.5),
          ops::pad(d.graph, d.normal({3, 5, 67, 37}), {0, 0, 2, 1}, {0, 0, 1, 2})};
}

}  // namespace

const OpCaseTable& layout_cases() {
  static const OpCaseTable table{
      {"sum",
       {with_gradient<small_reduce<ops::sum>>, with_gradient<large_reduce<ops::sum>>,
        with_gradient<sized_reduce<ops::sum>>}},
      {"mean",
       {with_gradient<small_reduce<ops::mean>>, with_gradient<large_reduce<ops::mean>>,
        with_gradient<sized_reduce<ops::mean>>}},
      {"max",
       {with_gradient<small_reduce<ops::max>>, with_gradient<large_max>,
        with_gradient<sized_reduce<ops::max>>}},
      {"broadcast_to",
       {with_gradient<small_broadcast>, with_gradient<large_broadcast>,
        with_gradient<sized_broadcast>}},
      {"transpose", {with_gradient<small_transpose>, with_gradient<large_transpose>}},
      {"slice", {with_gradient<small_slice>, with_gradient<large_slice>}},
      {"split", {with_gradient<small_split>, with_gradient<large_split>}},
      {"concat", {with_gradient<small_concat>, with_gradient<large_concat>}},
      {"pad", {with_gradient<small_pad>, with_gradient<large_pad>}}};
  return table;
}

}  // namespace keel::compare
