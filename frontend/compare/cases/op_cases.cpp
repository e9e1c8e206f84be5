#include "frontend/compare/cases/op_cases.h"

#include "frontend/compare/cases/column_cases.h"
#include "frontend/compare/cases/language_cases.h"
#include "src/ops/attention.h"
#include "src/ops/attention_window.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/embedding_bag.h"
#include "src/ops/filter_bank.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/mixture_density.h"
#include "src/ops/norm_noise.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/order_violation.h"
#include "src/ops/pool2d.h"
#include "src/ops/random_normal.h"
#include "src/ops/recurrent.h"
#include "src/ops/reduce.h"
#include "src/ops/relative_attention.h"
#include "src/ops/row_gradient.h"
#include "src/ops/search.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"

namespace keel::compare {
namespace {

Outputs op_matmul(CaseBuilder& d) {
  const Value a = d.normal({3, 17, 65}), b = d.normal({65, 33});
  return {ops::matmul(d.graph, a, b, {.bias = d.normal({33})}),
          ops::matmul(d.graph, d.normal({2, 9, 7}), d.normal({2, 5, 7}), {.transpose_b = true})};
}
Outputs op_conv2d(CaseBuilder& d) {
  const Value x = d.normal({2, 3, 9, 8}), w = d.normal({5, 3, 3, 3});
  return {ops::conv2d(d.graph, x, w, {.bias = d.normal({5}), .padding = 1})};
}
Outputs op_sum(CaseBuilder& d) {
  const Value x = d.normal({5, 7, 33});
  return {ops::sum(d.graph, x, {0, 2}), ops::sum(d.graph, x, {1})};
}
Outputs op_mean(CaseBuilder& d) {
  const Value x = d.normal({5, 7, 33});
  return {ops::mean(d.graph, x, {0, 2}), ops::mean(d.graph, x, {2}, true)};
}
Outputs op_max(CaseBuilder& d) { return {ops::max(d.graph, d.normal({5, 7, 33}), {2})}; }
Outputs op_broadcast(CaseBuilder& d) {
  return {ops::broadcast_to(d.graph, d.normal({5, 1, 33}), {5, 7, 33})};
}
Outputs op_transpose(CaseBuilder& d) {
  return {ops::transpose(d.graph, d.normal({5, 7, 33}), {2, 0, 1})};
}
Outputs op_slice(CaseBuilder& d) { return {ops::slice(d.graph, d.normal({9, 7}), {2, 1}, {5, 4})}; }
// The parts have 5 numbers each, too few to remain views of the input.
Outputs op_split(CaseBuilder& d) { return ops::split(d.graph, d.normal({6, 5}), 3); }
Outputs op_concat(CaseBuilder& d) {
  return {ops::concat(d.graph, {d.normal({3, 5}), d.normal({3, 8})}, 1)};
}
Outputs op_pad(CaseBuilder& d) {
  return {ops::pad(d.graph, d.normal({3, 5}), {1, 0}, {2, 3}, 0.5)};
}
Outputs op_softmax(CaseBuilder& d) { return {ops::softmax(d.graph, d.normal({9, 65}))}; }
Outputs op_log_softmax(CaseBuilder& d) { return {ops::log_softmax(d.graph, d.normal({9, 65}))}; }
Outputs op_cross_entropy(CaseBuilder& d) {
  const auto loss =
      ops::cross_entropy(d.graph, d.normal({9, 12}), d.below({9}, 12), {.label_smoothing = 0.1});
  return {loss.mean, loss.sum};
}
Outputs op_bce(CaseBuilder& d) {
  const Value x = d.normal({9, 12});
  const Value t = d.graph.constant(0.3), targets = ops::broadcast_to(d.graph, t, {9, 12});
  const auto loss = ops::bce_with_logits(d.graph, x, targets);
  return {loss.mean, loss.sum};
}
Outputs op_order_violation(CaseBuilder& d) {
  return {ops::order_violation(d.graph, d.normal({9, 33}), d.normal({7, 33}))};
}
Outputs op_max_pool(CaseBuilder& d) {
  return {ops::max_pool2d(d.graph, d.normal({2, 3, 9, 8}), 3, 2)};
}
Outputs op_avg_pool(CaseBuilder& d) {
  return {ops::avg_pool2d(d.graph, d.normal({2, 3, 9, 8}), 3, 2)};
}
Outputs op_embedding(CaseBuilder& d) {
  return {ops::embedding(d.graph, d.normal({19, 16}), d.below({7, 6}, 19), 0)};
}
Outputs op_dropout(CaseBuilder& d) {
  const Value x = d.normal({9, 33});
  return {ops::dropout(d.graph, x, key_of(d), 0.3, 1)};
}
Outputs op_attention(CaseBuilder& d) {
  const Value q = d.normal({2, 9, 16}), k = d.normal({2, 11, 16}), v = d.normal({2, 11, 16});
  const RandomKey key = key_of(d);
  return {ops::attention(d.graph, {q, k, v, d.mask({2, 11}), key.step, key.first_row},
                         {.heads = 4, .p = 0.2, .seed = 1})};
}
// A memory of 4, of which each row has another part, and fewer distances than keys.
Outputs op_relative_attention(CaseBuilder& d) {
  const Value q = d.normal({2, 9, 16}), k = d.normal({2, 13, 16}), v = d.normal({2, 13, 16});
  const Value p = d.normal({8, 16}), u = d.normal({16}), w = d.normal({16});
  return {ops::relative_attention(d.graph, {q, k, v, p, u, w, d.below({2}, 5)},
                                  {.heads = 4, .window = 7})};
}
Outputs op_lstm_cell(CaseBuilder& d) {
  const Value u = d.normal({6, 4 * 17}), w = d.normal({6, 4 * 17}), before = d.normal({6, 17});
  const ops::LstmCell all = ops::lstm_cell(d.graph, u, w, before);
  const ops::LstmCell some = ops::lstm_cell(d.graph, u, w, before, d.mask({6}));
  return {all.c, all.o, some.c, some.o};
}
Outputs op_lstm_output(CaseBuilder& d) {
  const Value o = d.positive({6, 17}), n = d.normal({6, 17}), before = d.normal({6, 17});
  return {ops::lstm_output(d.graph, o, n), ops::lstm_output(d.graph, o, n, before, d.mask({6}))};
}
Outputs op_gru_cell(CaseBuilder& d) {
  ops::GruCell cell{d.normal({6, 2 * 17}), d.normal({6, 2 * 17}), d.normal({6, 17}),
                    d.normal({6, 17}), d.normal({6, 17})};
  const Value all = ops::gru_cell(d.graph, cell);
  cell.mask = d.mask({6});
  return {all, ops::gru_cell(d.graph, cell)};
}
Outputs op_attention_window(CaseBuilder& d) {
  const Value components = d.normal({5, 12}), before = d.normal({5, 4});
  const auto window = ops::attention_window(d.graph, components, before, d.below({5, 19}, 7), 7);
  return {window.w, window.kappa, window.phi};
}
Outputs op_mixture_density(CaseBuilder& d) {
  const Value y = d.normal({9, 25}), points = ops::stop_gradient(d.graph, d.normal({9, 3}));
  const Value mask = ops::reshape(d.graph, d.mask({3, 3}), {9});
  return {ops::mixture_density(d.graph, y, points, mask).nll};
}
Outputs op_filter_bank(CaseBuilder& d) {
  const Value p = ops::scale(d.graph, d.normal({5, 5}), 0.5);
  const auto bank = ops::filter_bank(d.graph, p, {.filters = 3, .rows = 7, .columns = 9});
  return {bank.fx, bank.fy};
}
Outputs op_norm_noise(CaseBuilder& d) {
  const Value x = d.normal({9, 16});
  return {ops::norm_noise(d.graph, x, {key_of(d)}, {.seed = 1})};
}
Outputs op_fused(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value a = d.normal({9, 33}), b = d.normal({33});
  const Value gate = ops::sigmoid(g, ops::scale(g, a, 0.5, 0.25));
  return {ops::gelu(
      g, ops::add(g, ops::mul(g, ops::tanh(g, ops::add(g, a, b)), gate), ops::square(g, a)))};
}

void op_random_normal(CaseBuilder& d) {
  d.mark({ops::random_normal(d.graph, {DType::kF32, {9, 33}}, key_of(d), 1)});
}
void op_errors(CaseBuilder& d) {
  d.mark({ops::classification_errors(d.graph, d.normal({9, 12}), d.below({9}, 12))});
}

void op_top_k(CaseBuilder& d) {
  const ops::Ranked ranked = ops::top_k(d.graph, d.normal({9, 33}), 5);
  d.mark({ranked.values, ranked.indices});
}
void op_scatter(CaseBuilder& d) {
  const Value t = d.graph.constant(Tensor::of<std::int32_t>({}, {3}));
  d.mark({ops::scatter(d.graph, d.normal({4, 7, 16}), d.normal({4, 1, 16}), t)});
}
void op_embedding_bag(CaseBuilder& d) {
  d.mark({ops::embedding_bag(d.graph, d.normal({6, 19, 16}), d.below({7, 6}, 19))});
}

void op_group_ids(CaseBuilder& d) {
  mark_all(d, d.graph.add(kGroupIds, {d.below({7, 6}, 19)}, GroupIdsAttrs{0, 17}));
}
// The gradient of a table of 33 rows, some of them given.
ParameterGradient some_rows(CaseBuilder& d) {
  return ops::row_gradient(d.graph, d.below({7, 6}, 33), d.normal({7, 6, 9}),
                           {.padding_id = 0, .vocabulary = 33});
}
void op_sum_groups(CaseBuilder& d) { d.mark({some_rows(d)}); }
void op_sum_squares(CaseBuilder& d) {
  const ParameterGradient rows = some_rows(d);
  d.mark({ops::sum_squares(d.graph, d.normal({9, 33})),
          ops::sum_squares(d.graph, rows, rows.ids, 33)});
}

// p, g, lr and scale of an update, then all of its outputs; and the same by rows of a gradient.
struct CaseUpdate {
  Value p, g, lr, scale;
  explicit CaseUpdate(CaseBuilder& d)
      : p(d.normal({33, 9})), g(d.normal({33, 9})), lr(d.positive({})), scale(d.positive({})) {}
};
Value normal_state(CaseBuilder& d) { return d.normal({33, 9}); }
Value positive_state(CaseBuilder& d) { return d.positive({33, 9}); }

void op_sgd(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value before = normal_state(d);
  const SgdAttrs attrs{.momentum = 0.9, .weight_decay = 0.01};
  mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, before}, attrs));
  const ParameterGradient rows = some_rows(d);
  mark_all(d, ops::sgd_step(d.graph, {u.p, rows, u.lr, u.scale, before, rows.ids}, attrs));
  mark_all(d, ops::sgd_step(d.graph, {u.p, rows, u.lr, u.scale, {}, rows.ids}, {}));
}
void op_adam(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value step = d.step(), m = normal_state(d), v = positive_state(d);
  const AdamAttrs attrs{.weight_decay = 0.01}, lazy{.lazy = true};
  mark_all(d, ops::adam_step(d.graph, {u.p, u.g, u.lr, u.scale, step, m, v}, attrs));
  const ParameterGradient rows = some_rows(d);
  const ops::AdamOperands by_rows{u.p, rows, u.lr, u.scale, step, m, v, rows.ids};
  mark_all(d, ops::adam_step(d.graph, by_rows, attrs));
  mark_all(d, ops::adam_step(d.graph, by_rows, lazy));
}
void op_adagrad(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value h = positive_state(d);
  mark_all(d, ops::adagrad_step(d.graph, {u.p, u.g, u.lr, u.scale, h}, {}));
  const ParameterGradient rows = some_rows(d);
  mark_all(d, ops::adagrad_step(d.graph, {u.p, rows, u.lr, u.scale, h, rows.ids}, {}));
}
// n is at least q^2, as a mean of squares is.
void op_graves(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value q = normal_state(d), before = normal_state(d);
  const Value n = ops::add(d.graph, ops::square(d.graph, q), positive_state(d));
  mark_all(d, ops::rmsprop_step(d.graph, {u.p, u.g, u.lr, u.scale, n, q, before}, {}));
  const ParameterGradient rows = some_rows(d);
  const ops::GravesOperands by_rows{u.p, rows, u.lr, u.scale, n, q, before, rows.ids};
  mark_all(d, ops::rmsprop_step(d.graph, by_rows, {}));
}

}  // namespace

const std::map<std::string_view, BuildOp>& op_cases() {
  static const std::map<std::string_view, BuildOp> builds{
      {"matmul", with_gradient<op_matmul>},
      {"conv2d", with_gradient<op_conv2d>},
      {"sum", with_gradient<op_sum>},
      {"mean", with_gradient<op_mean>},
      {"max", with_gradient<op_max>},
      {"broadcast_to", with_gradient<op_broadcast>},
      {"transpose", with_gradient<op_transpose>},
      {"slice", with_gradient<op_slice>},
      {"split", with_gradient<op_split>},
      {"concat", with_gradient<op_concat>},
      {"pad", with_gradient<op_pad>},
      {"softmax", with_gradient<op_softmax>},
      {"log_softmax", with_gradient<op_log_softmax>},
      {"cross_entropy", with_gradient<op_cross_entropy>},
      {"linear_cross_entropy", with_gradient<small_linear_cross_entropy>},
      {"bce_with_logits", with_gradient<op_bce>},
      {"order_violation", with_gradient<op_order_violation>},
      {"max_pool2d", with_gradient<op_max_pool>},
      {"avg_pool2d", with_gradient<op_avg_pool>},
      {"embedding", with_gradient<op_embedding>},
      {"dropout", with_gradient<op_dropout>},
      {"attention", with_gradient<op_attention>},
      {"relative_attention", with_gradient<op_relative_attention>},
      {"multilinear_attention", with_gradient<small_multilinear>},
      {"lstm_cell", with_gradient<op_lstm_cell>},
      {"lstm_output", with_gradient<op_lstm_output>},
      {"gru_cell", with_gradient<op_gru_cell>},
      {"norm_noise", with_gradient<op_norm_noise>},
      {"attention_window", with_gradient<op_attention_window>},
      {"filter_bank", with_gradient<op_filter_bank>},
      {"mixture_density", with_gradient<op_mixture_density>},
      {"fused_elementwise", with_gradient<op_fused>},
      {"column_moments", small_columns<case_of_moments>},
      {"column_squares", small_columns<case_of_squares>},
      {"merge_moments", small_columns<case_of_merged_moments>},
      {"merge_sums", small_columns<case_of_merged_sums>},
      {"centred_gradient_sums", small_columns<case_of_centred_sums>},
      {"uncentred_gradient_sums", small_columns<case_of_uncentred_sums>},
      {"linear_cross_entropy_step", small_loss_step},
      {"top_k", op_top_k},
      {"scatter", op_scatter},
      {"embedding_bag", op_embedding_bag},
      {"group_ids", op_group_ids},
      {"sum_groups", op_sum_groups},
      {"random_normal", op_random_normal},
      {"classification_errors", op_errors},
      {"sum_squares", op_sum_squares},
      {"sgd_step", op_sgd},
      {"adam_step", op_adam},
      {"adagrad_step", op_adagrad},
      {"rmsprop_step", op_graves}};
  return builds;
}

}  // namespace keel::compare
