// Every op that is no norm and not element-wise, on large inputs and hard numbers.
#include "frontend/compare/cases/column_cases.h"
#include "frontend/compare/cases/language_cases.h"
#include "frontend/compare/cases/op_cases.h"
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
namespace large {  // the names are those of op_cases.cpp
namespace {

// Several blocks of rows, the last of which is short, of a register and a rest.
constexpr std::int64_t kRows = 4133, kWidth = 19;
const Shape kManyRows{kRows, kWidth};
// Rows of many registers and a rest; hostile ones are of every kind.
const Shape kWideRows{37, 1061}, kHostile{13, 1061};

Value scores(CaseBuilder& d, const Shape& shape) { return d.floats(Sampled::kScores, shape); }
Value mixed(CaseBuilder& d, const Shape& shape) { return d.floats(Sampled::kMixed, shape); }
Value hostile(CaseBuilder& d) { return d.floats(Sampled::kHostileRows, kHostile); }

Outputs op_matmul(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = d.normal({kRows, 37}), weight = d.normal({37, kWidth});
  const Value batches = d.normal({3, 37, 131}), turned = d.normal({3, 67, 131});
  const Value long_a = mixed(d, {4133, 17}), long_b = mixed(d, {4133, 5});
  const Value wide = d.normal({7, 19}), columns = d.normal({19, 1061});
  return {ops::matmul(g, many, weight, {.bias = d.normal({kWidth})}),
          ops::matmul(g, batches, turned, {.transpose_b = true}),
          ops::matmul(g, long_a, long_b, {.transpose_a = true}), ops::matmul(g, wide, columns)};
}
Outputs op_conv2d(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value x = d.normal({3, 19, 21, 18}), w = d.normal({37, 19, 3, 3});
  const Value few = mixed(d, {5, 3, 33, 31}), wide = d.normal({7, 3, 5, 5});
  return {ops::conv2d(g, x, w, {.bias = d.normal({37}), .padding = 1}),
          ops::conv2d(g, few, wide, {.stride = 2})};
}
// Reductions over long columns, over columns of more than a chunk, over one long row, and over axes
// that are not adjacent.
template <Value (*kReduce)(Graph&, Value, std::vector<std::int64_t>, bool)>
Outputs op_reduce(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = d.normal({kRows, 37}), wide = mixed(d, {67, 2085});
  return {kReduce(g, many, {0}, false), kReduce(g, many, {1}, true), kReduce(g, wide, {0}, false),
          kReduce(g, d.normal({70001}), {0}, false),
          kReduce(g, d.normal({3, 37, 131}), {0, 2}, false)};
}
Outputs op_max(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value many = mixed(d, kManyRows);
  return {ops::max(g, many, {1}), ops::max(g, many, {0}), ops::max(g, hostile(d), {1}),
          ops::max(g, d.normal({3, 37, 131}), {1})};
}
Outputs op_broadcast(CaseBuilder& d) {
  Graph& g = d.graph;
  return {ops::broadcast_to(g, d.normal({kRows, 1, 3}), {kRows, 7, 3}),
          ops::broadcast_to(g, d.normal({37}), {1061, 37}),
          ops::broadcast_to(g, d.normal({1061, 1}), {1061, 19})};
}
Outputs op_transpose(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value images = d.normal({131, 67, 5});
  return {ops::transpose(g, d.normal(kManyRows), {1, 0}), ops::transpose(g, images, {2, 0, 1}),
          ops::transpose(g, images, {1, 0, 2}), ops::transpose(g, images, {0, 2, 1})};
}
Outputs op_slice(CaseBuilder& d) {
  return {ops::slice(d.graph, d.normal(kManyRows), {7, 2}, {4111, 13}),
          ops::slice(d.graph, d.normal({37, 67, 19}), {1, 0, 2}, {35, 67, 16})};
}
Outputs op_split(CaseBuilder& d) { return ops::split(d.graph, d.normal({3 * kRows, 5}), 3); }
Outputs op_concat(CaseBuilder& d) {
  return {ops::concat(d.graph, {d.normal({kRows, 5}), d.normal({kRows, 8})}, 1),
          ops::concat(d.graph, {d.normal({1061, 19}), d.normal({kRows, 19})}, 0)};
}
Outputs op_pad(CaseBuilder& d) {
  return {ops::pad(d.graph, d.normal({kRows, 5}), {1, 0}, {2, 3}, 0.5),
          ops::pad(d.graph, d.normal({3, 5, 67, 37}), {0, 0, 2, 1}, {0, 0, 1, 2})};
}
Outputs op_softmax(CaseBuilder& d) {
  Graph& g = d.graph;
  return {ops::softmax(g, d.normal(kManyRows)), ops::softmax(g, scores(d, kWideRows)),
          ops::softmax(g, hostile(d)), ops::softmax(g, d.normal({3, 16421}))};
}
Outputs op_log_softmax(CaseBuilder& d) {
  Graph& g = d.graph;
  return {ops::log_softmax(g, d.normal(kManyRows)), ops::log_softmax(g, scores(d, kWideRows)),
          ops::log_softmax(g, hostile(d)), ops::log_softmax(g, d.normal({3, 16421}))};
}
Outputs op_cross_entropy(CaseBuilder& d) {
  Graph& g = d.graph;
  const auto many = ops::cross_entropy(g, scores(d, kManyRows), d.below({kRows}, kWidth));
  const auto wide = ops::cross_entropy(g, d.normal(kWideRows), d.below({37}, 1061),
                                       {.label_smoothing = 0.1, .ignore_index = 0});
  const auto hard =
      ops::cross_entropy(g, scores(d, {300, 67}), d.below({300}, 67), {.label_smoothing = 0.1});
  return {many.mean, many.sum, wide.mean, wide.sum, hard.mean, hard.sum};
}
Outputs op_bce(CaseBuilder& d) {
  const Value x = scores(d, kManyRows), near = d.normal(kManyRows);
  const Value targets = ops::sigmoid(d.graph, d.normal(kManyRows));
  const Value given = ops::stop_gradient(d.graph, targets);
  const auto far_loss = ops::bce_with_logits(d.graph, x, given);
  const auto near_loss = ops::bce_with_logits(d.graph, near, given);
  return {far_loss.mean, far_loss.sum, near_loss.mean, near_loss.sum};
}
Outputs op_order_violation(CaseBuilder& d) {
  return {ops::order_violation(d.graph, d.normal({133, 67}), d.normal({141, 67})),
          ops::order_violation(d.graph, d.normal({kRows, 5}), d.normal({3, 5}))};
}
Outputs op_max_pool(CaseBuilder& d) {
  return {ops::max_pool2d(d.graph, mixed(d, {3, 19, 33, 31}), 3, 2),
          ops::max_pool2d(d.graph, d.normal({kRows, 1, 4, 4}), 2, 2)};
}
Outputs op_avg_pool(CaseBuilder& d) {
  return {ops::avg_pool2d(d.graph, mixed(d, {3, 19, 33, 31}), 3, 2),
          ops::avg_pool2d(d.graph, d.normal({kRows, 1, 4, 4}), 2, 2)};
}
Outputs op_embedding(CaseBuilder& d) {
  return {ops::embedding(d.graph, d.normal({19, 5}), d.below({kRows}, 19), 0),
          ops::embedding(d.graph, d.normal({1061, 71}), d.below({37, 11}, 1061), 0)};
}
Outputs op_dropout(CaseBuilder& d) {
  const Value many = d.normal(kManyRows), wide = mixed(d, {5, 16421});
  return {ops::dropout(d.graph, many, key_of(d), 0.3, 1),
          ops::dropout(d.graph, wide, key_of(d), 0.1, 2)};
}
// Several tiles of queries and of keys, more than 4,096 keys, and scores of about 100.
Outputs op_attention(CaseBuilder& d) {
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
// Several tiles of queries, keys and distances; a key for every distance, and fewer of them; a
// window; more than 4,096 keys; and scores of about 100.
Outputs op_relative_attention(CaseBuilder& d) {
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
Outputs op_lstm_cell(CaseBuilder& d) {
  const Shape gates{kRows, 4 * 5}, state{kRows, 5}, wide_gates{67, 4 * 259}, wide{67, 259};
  const auto all = ops::lstm_cell(d.graph, mixed(d, gates), d.normal(gates), d.normal(state));
  const auto some = ops::lstm_cell(d.graph, d.normal(wide_gates), d.normal(wide_gates),
                                   d.normal(wide), d.mask({67}));
  return {all.c, all.o, some.c, some.o};
}
Outputs op_lstm_output(CaseBuilder& d) {
  const Shape many{kRows, 5}, wide{67, 259};
  return {
      ops::lstm_output(d.graph, d.positive(many), mixed(d, many)),
      ops::lstm_output(d.graph, d.positive(wide), d.normal(wide), d.normal(wide), d.mask({67}))};
}
Outputs op_gru_cell(CaseBuilder& d) {
  const auto cell = [&](std::int64_t rows, std::int64_t width) {
    return ops::GruCell{mixed(d, {rows, 2 * width}), d.normal({rows, 2 * width}),
                        d.normal({rows, width}), d.normal({rows, width}), d.normal({rows, width})};
  };
  const Value all = ops::gru_cell(d.graph, cell(kRows, 5));
  ops::GruCell wide = cell(67, 259);
  wide.mask = d.mask({67});
  return {all, ops::gru_cell(d.graph, wide)};
}
// Bumps that reach the last symbols of a long text.
Outputs op_attention_window(CaseBuilder& d) {
  const Value components = d.normal({61, 30}),
              before = ops::scale(d.graph, d.positive({61, 10}), 20);
  const auto many = ops::attention_window(d.graph, d.normal({kRows, 3}), d.normal({kRows, 1}),
                                          d.below({kRows, 3}, 5), 5);
  const auto wide = ops::attention_window(d.graph, components, before, d.below({61, 67}, 37), 37);
  return {many.w, many.kappa, many.phi, wide.w, wide.kappa, wide.phi};
}
Outputs op_mixture_density(CaseBuilder& d) {
  const auto nll = [&](std::int64_t rows, std::int64_t components, Value mask) {
    const Value y = d.normal({rows, 1 + 6 * components});
    const Value points = ops::stop_gradient(d.graph, d.normal({rows, 3}));
    return ops::mixture_density(d.graph, y, points, mask).nll;
  };
  const Value many = nll(kRows, 1, {});
  return {many, nll(133, 10, d.mask({133}))};
}
Outputs op_filter_bank(CaseBuilder& d) {
  const auto bank = [&](std::int64_t rows, const FilterBankAttrs& attrs) {
    return ops::filter_bank(d.graph, ops::scale(d.graph, d.normal({rows, 5}), 0.5), attrs);
  };
  const auto many = bank(kRows, {.filters = 2, .rows = 3, .columns = 5});
  const auto wide = bank(71, {.filters = 5, .rows = 67, .columns = 41});
  return {many.fx, many.fy, wide.fx, wide.fy};
}
Outputs op_norm_noise(CaseBuilder& d) {
  const Value many = d.normal(kManyRows), wide = mixed(d, kWideRows);
  return {ops::norm_noise(d.graph, many, {key_of(d)}, {.seed = 1}),
          ops::norm_noise(d.graph, wide, {key_of(d)}, {.seed = 2})};
}
Outputs op_fused(CaseBuilder& d) {
  Graph& g = d.graph;
  const Value a = mixed(d, kManyRows), b = d.normal({kWidth});
  const Value gate = ops::sigmoid(g, ops::scale(g, a, 0.5, 0.25));
  return {ops::gelu(
      g, ops::add(g, ops::mul(g, ops::tanh(g, ops::add(g, a, b)), gate), ops::square(g, a)))};
}

void op_random_normal(CaseBuilder& d) {
  d.mark({ops::random_normal(d.graph, {DType::kF32, kManyRows}, key_of(d), 1),
          ops::random_normal(d.graph, {DType::kF32, {3, 16421}}, key_of(d), 2)});
}
void op_errors(CaseBuilder& d) {
  d.mark({ops::classification_errors(d.graph, scores(d, kManyRows), d.below({kRows}, kWidth)),
          ops::classification_errors(d.graph, d.normal(kWideRows), d.below({37}, 3))});
}
// Ids of several chunks, some of them beyond the table; and few ids, each very often.
void op_group_ids(CaseBuilder& d) {
  mark_all(d, d.graph.add(kGroupIds, {d.below({kRows, 7}, 5003)}, GroupIdsAttrs{0, 5000}));
  mark_all(d, d.graph.add(kGroupIds, {d.below({kRows}, 3)}, GroupIdsAttrs{1, 3}));
}
// The gradient of a table of kRows rows, most of which are given.
ParameterGradient some_rows(CaseBuilder& d) {
  return ops::row_gradient(d.graph, d.below({kRows}, kRows), mixed(d, {kRows, kWidth}),
                           {.padding_id = 0, .vocabulary = kRows});
}
void op_sum_groups(CaseBuilder& d) {
  const ParameterGradient few =
      ops::row_gradient(d.graph, d.below({1061}, 7), mixed(d, {1061, 67}), {.vocabulary = 7});
  d.mark({some_rows(d), few});
}
void op_sum_squares(CaseBuilder& d) {
  const ParameterGradient rows = some_rows(d);
  d.mark({ops::sum_squares(d.graph, mixed(d, kManyRows)),
          ops::sum_squares(d.graph, rows, rows.ids, kRows)});
}

void op_top_k(CaseBuilder& d) {
  const ops::Ranked many = ops::top_k(d.graph, d.normal(kManyRows), 5);
  const ops::Ranked wide = ops::top_k(d.graph, mixed(d, kWideRows), 17);
  const ops::Ranked hard = ops::top_k(d.graph, hostile(d), 3);
  d.mark({many.values, many.indices, wide.values, wide.indices, hard.values, hard.indices});
}
void op_scatter(CaseBuilder& d) {
  const Value t = d.graph.constant(Tensor::of<std::int32_t>({}, {130}));
  d.mark({ops::scatter(d.graph, d.normal({37, 131, 19}), d.normal({37, 1, 19}), t)});
}
void op_embedding_bag(CaseBuilder& d) {
  d.mark({ops::embedding_bag(d.graph, d.normal({6, 19, 67}), d.below({521, 6}, 19)),
          ops::embedding_bag(d.graph, d.normal({3, 19, 5}), d.below({kRows, 3}, 19))});
}

// p, g, lr and scale of an update. Gradients are of very different sizes, some 0, and so are second
// moments, beside which the eps of the update is large or small.
struct CaseUpdate {
  Value p, g, lr, scale;
  explicit CaseUpdate(CaseBuilder& d)
      : p(d.normal(kManyRows)), g(mixed(d, kManyRows)), lr(d.positive({})), scale(d.positive({})) {}
  static Value moment(CaseBuilder& d) { return d.floats(Sampled::kMagnitudes, kManyRows); }
};
void op_sgd(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value before = d.normal(kManyRows);
  mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, before},
                            {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
  mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, {}}, {}));
  const ParameterGradient rows = some_rows(d);
  mark_all(d, ops::sgd_step(d.graph, {u.p, rows, u.lr, u.scale, {}, rows.ids}, {}));
}
void op_adam(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value step = d.step(), m = mixed(d, kManyRows), v = CaseUpdate::moment(d);
  const ops::AdamOperands operands{u.p, u.g, u.lr, u.scale, step, m, v};
  mark_all(d, ops::adam_step(d.graph, operands, {.eps = 1e-3}));
  mark_all(d, ops::adam_step(d.graph, operands, {.weight_decay = 0.01, .decoupled = true}));
  mark_all(d, ops::adam_step(d.graph, operands, {.eps = 1e-6, .raw_eps = true}));
  const ParameterGradient rows = some_rows(d);
  const ops::AdamOperands by_rows{u.p, rows, u.lr, u.scale, step, m, v, rows.ids};
  mark_all(d, ops::adam_step(d.graph, by_rows, {.eps = 1e-3}));
  mark_all(d, ops::adam_step(d.graph, by_rows, {.eps = 1e-3, .lazy = true}));
}
void op_adagrad(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value h = CaseUpdate::moment(d);
  mark_all(d, ops::adagrad_step(d.graph, {u.p, u.g, u.lr, u.scale, h}, {.eps = 1e-3}));
  const ParameterGradient rows = some_rows(d);
  mark_all(d, ops::adagrad_step(d.graph, {u.p, rows, u.lr, u.scale, h, rows.ids}, {.eps = 1e-3}));
}
void op_graves(CaseBuilder& d) {
  const CaseUpdate u(d);
  const Value q = d.normal(kManyRows), before = mixed(d, kManyRows);
  const Value n = ops::add(d.graph, ops::square(d.graph, q), d.positive(kManyRows));
  mark_all(d, ops::rmsprop_step(d.graph, {u.p, u.g, u.lr, u.scale, n, q, before}, {}));
}

const std::map<std::string_view, BuildOp>& op_cases() {
  static const std::map<std::string_view, BuildOp> builds{
      {"matmul", with_gradient<op_matmul>},
      {"conv2d", with_gradient<op_conv2d>},
      {"sum", with_gradient<op_reduce<ops::sum>>},
      {"mean", with_gradient<op_reduce<ops::mean>>},
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
      {"linear_cross_entropy", with_gradient<large_linear_cross_entropy>},
      {"bce_with_logits", with_gradient<op_bce>},
      {"order_violation", with_gradient<op_order_violation>},
      {"max_pool2d", with_gradient<op_max_pool>},
      {"avg_pool2d", with_gradient<op_avg_pool>},
      {"embedding", with_gradient<op_embedding>},
      {"dropout", with_gradient<op_dropout>},
      {"attention", with_gradient<op_attention>},
      {"relative_attention", with_gradient<op_relative_attention>},
      {"multilinear_attention", with_gradient<large_multilinear>},
      {"lstm_cell", with_gradient<op_lstm_cell>},
      {"lstm_output", with_gradient<op_lstm_output>},
      {"gru_cell", with_gradient<op_gru_cell>},
      {"norm_noise", with_gradient<op_norm_noise>},
      {"attention_window", with_gradient<op_attention_window>},
      {"filter_bank", with_gradient<op_filter_bank>},
      {"mixture_density", with_gradient<op_mixture_density>},
      {"fused_elementwise", with_gradient<op_fused>},
      {"column_moments", large_columns<case_of_moments>},
      {"column_squares", large_columns<case_of_squares>},
      {"merge_moments", large_columns<case_of_merged_moments>},
      {"merge_sums", large_columns<case_of_merged_sums>},
      {"centred_gradient_sums", large_columns<case_of_centred_sums>},
      {"uncentred_gradient_sums", large_columns<case_of_uncentred_sums>},
      {"linear_cross_entropy_step", large_loss_step},
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

}  // namespace
}  // namespace large

const std::map<std::string_view, BuildOp>& large_op_cases() { return large::op_cases(); }

}  // namespace keel::compare
