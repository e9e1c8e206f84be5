// Cases of recurrent cells, of the filters of DRAW, and of fused element-wise chains.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/elementwise.h"
#include "src/ops/filter_bank.h"
#include "src/ops/recurrent.h"

namespace keel::compare {
namespace {

Outputs lstm_of(CaseBuilder& d, Value u, Value mask) {
  const Shape gates = d.graph.shape(u);
  const ops::LstmCell cell =
      ops::lstm_cell(d.graph, u, d.normal(gates), d.normal({gates[0], gates[1] / 4}), mask);
  return {cell.c, cell.o};
}
Outputs joined(Outputs a, const Outputs& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Outputs small_lstm_cell(CaseBuilder& d) {
  const Value u = d.normal({6, 4 * 17});
  return joined(lstm_of(d, u, {}), lstm_of(d, u, d.mask({6})));
}
Outputs large_lstm_cell(CaseBuilder& d) {
  return joined(lstm_of(d, mixed(d, {kManyRows, 4 * 5}), {}),
                lstm_of(d, d.normal({67, 4 * 259}), d.mask({67})));
}
Outputs sized_lstm_cell(CaseBuilder& d, std::int64_t n) {
  const std::int64_t rows = rows_of(n);
  return joined(lstm_of(d, d.normal({rows, 4 * n}), {}),
                lstm_of(d, d.normal({rows, 4 * n}), d.mask({rows})));
}

Outputs output_of(CaseBuilder& d, const Shape& state, Value c) {
  return {ops::lstm_output(d.graph, d.positive(state), c),
          ops::lstm_output(d.graph, d.positive(state), c, d.normal(state), d.mask({state[0]}))};
}
Outputs small_lstm_output(CaseBuilder& d) { return output_of(d, {6, 17}, d.normal({6, 17})); }
Outputs large_lstm_output(CaseBuilder& d) {
  const Shape many{kManyRows, 5}, wide{67, 259};
  return joined(output_of(d, many, mixed(d, many)), output_of(d, wide, d.normal(wide)));
}
Outputs sized_lstm_output(CaseBuilder& d, std::int64_t n) {
  const Shape state{rows_of(n), n};
  return output_of(d, state, d.normal(state));
}

Value gru_of(CaseBuilder& d, Value u, Value mask) {
  const Shape gates = d.graph.shape(u), state{gates[0], gates[1] / 2};
  return ops::gru_cell(
      d.graph, {u, d.normal(gates), d.normal(state), d.normal(state), d.normal(state), mask});
}
Outputs small_gru_cell(CaseBuilder& d) {
  const Value u = d.normal({6, 2 * 17});
  return {gru_of(d, u, {}), gru_of(d, u, d.mask({6}))};
}
Outputs large_gru_cell(CaseBuilder& d) {
  return {gru_of(d, mixed(d, {kManyRows, 2 * 5}), {}),
          gru_of(d, d.normal({67, 2 * 259}), d.mask({67}))};
}
Outputs sized_gru_cell(CaseBuilder& d, std::int64_t n) {
  const Value u = d.normal({rows_of(n), 2 * n});
  return {gru_of(d, u, {}), gru_of(d, u, d.mask({rows_of(n)}))};
}

Outputs bank_of(CaseBuilder& d, std::int64_t rows, const FilterBankAttrs& attrs) {
  const Value p = ops::scale(d.graph, d.normal({rows, 5}), 0.5);
  const auto bank = ops::filter_bank(d.graph, p, attrs);
  return {bank.fx, bank.fy};
}
Outputs small_filter_bank(CaseBuilder& d) {
  return bank_of(d, 5, {.filters = 3, .rows = 7, .columns = 9});
}
Outputs large_filter_bank(CaseBuilder& d) {
  return joined(bank_of(d, kManyRows, {.filters = 2, .rows = 3, .columns = 5}),
                bank_of(d, 71, {.filters = 5, .rows = 67, .columns = 41}));
}

// A chain of ops of every number of operands, of which a is read four times.
Value chain_of(Graph& g, Value a, Value b) {
  const Value gate = ops::sigmoid(g, ops::scale(g, a, 0.5, 0.25));
  return ops::gelu(
      g, ops::add(g, ops::mul(g, ops::tanh(g, ops::add(g, a, b)), gate), ops::square(g, a)));
}
Outputs small_fused(CaseBuilder& d) {
  return {chain_of(d.graph, d.normal({9, 33}), d.normal({33}))};
}
Outputs large_fused(CaseBuilder& d) {
  return {chain_of(d.graph, mixed(d, {kManyRows, 19}), d.normal({19}))};
}
// b is stretched along rows, and along columns.
Outputs sized_fused(CaseBuilder& d, std::int64_t n) {
  const Shape shape{rows_of(n), n};
  return {chain_of(d.graph, d.normal(shape), d.normal({n})),
          chain_of(d.graph, d.normal(shape), d.normal({shape[0], 1}))};
}

}  // namespace

const OpCaseTable& recurrent_cases() {
  static const OpCaseTable table{
      {"lstm_cell",
       {with_gradient<small_lstm_cell>, with_gradient<large_lstm_cell>,
        with_gradient<sized_lstm_cell>}},
      {"lstm_output",
       {with_gradient<small_lstm_output>, with_gradient<large_lstm_output>,
        with_gradient<sized_lstm_output>}},
      {"gru_cell",
       {with_gradient<small_gru_cell>, with_gradient<large_gru_cell>,
        with_gradient<sized_gru_cell>}},
      {"filter_bank", {with_gradient<small_filter_bank>, with_gradient<large_filter_bank>}},
      {"fused_elementwise",
       {with_gradient<small_fused>, with_gradient<large_fused>, with_gradient<sized_fused>}}};
  return table;
}

}  // namespace keel::compare
