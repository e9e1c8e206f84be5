// Cases of optimizers, of gradients as rows of a table, and of their sums of squares.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/elementwise.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/row_gradient.h"

namespace keel::compare {
namespace {

// The kinds of an update's numbers. Hard gradients are of very different sizes, some 0, and so are
// second moments, beside which the eps of the update is large or small.
struct UpdateKinds {
  Sampled gradient, state, moment;
};
constexpr UpdateKinds kEasy{Sampled::kNormal, Sampled::kNormal, Sampled::kPositive};
constexpr UpdateKinds kHard{Sampled::kMixed, Sampled::kMixed, Sampled::kMagnitudes};

// The inputs of an optimizer: a parameter, its gradient, whole and as rows, and states.
struct UpdateCase {
  CaseBuilder& d;
  Shape shape;
  UpdateKinds kinds;
  Value p, g, lr, scale;

  UpdateCase(CaseBuilder& of, Shape table, UpdateKinds with)
      : d(of),
        shape(std::move(table)),
        kinds(with),
        p(d.normal(shape)),
        g(d.floats(kinds.gradient, shape)),
        lr(d.positive({})),
        scale(d.positive({})) {}

  Value state() const { return d.floats(kinds.state, shape); }
  Value moment() const { return d.floats(kinds.moment, shape); }
  // As many gradients as p has rows, for some of its rows, the first of which is padding.
  ParameterGradient rows() const {
    return ops::row_gradient(d.graph, d.below({shape[0]}, shape[0]),
                             d.floats(kinds.gradient, shape),
                             {.padding_id = 0, .vocabulary = shape[0]});
  }
};

UpdateCase small_update(CaseBuilder& d) { return {d, {33, 9}, kEasy}; }
UpdateCase large_update(CaseBuilder& d) { return {d, {kManyRows, 19}, kHard}; }

template <UpdateCase (*kCase)(CaseBuilder&)>
void sgd_steps(CaseBuilder& d) {
  const UpdateCase u = kCase(d);
  const Value before = u.state();
  for (const bool nesterov : {false, true}) {
    mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, before},
                              {.momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov}));
  }
  mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, {}}, {}));
  const ParameterGradient rows = u.rows();
  mark_all(d, ops::sgd_step(d.graph, {u.p, rows, u.lr, u.scale, before, rows.ids},
                            {.momentum = 0.9, .weight_decay = 0.01}));
  mark_all(d, ops::sgd_step(d.graph, {u.p, rows, u.lr, u.scale, {}, rows.ids}, {}));
}
template <UpdateCase (*kCase)(CaseBuilder&)>
void adam_steps(CaseBuilder& d) {
  const UpdateCase u = kCase(d);
  const Value step = d.step(), m = u.state(), v = u.moment();
  const ops::AdamOperands whole{u.p, u.g, u.lr, u.scale, step, m, v};
  mark_all(d, ops::adam_step(d.graph, whole, {.eps = 1e-3}));
  mark_all(d, ops::adam_step(d.graph, whole, {.weight_decay = 0.01}));
  mark_all(d, ops::adam_step(d.graph, whole, {.weight_decay = 0.01, .decoupled = true}));
  mark_all(d,
           ops::adam_step(d.graph, whole,
                          {.eps = 1e-6, .raw_eps = true, .release_bias = true, .lr_scale = 0.3}));
  const ParameterGradient rows = u.rows();
  const ops::AdamOperands by_rows{u.p, rows, u.lr, u.scale, step, m, v, rows.ids};
  mark_all(d, ops::adam_step(d.graph, by_rows, {.eps = 1e-3}));
  mark_all(d, ops::adam_step(d.graph, by_rows, {.eps = 1e-3, .lazy = true}));
}
template <UpdateCase (*kCase)(CaseBuilder&)>
void adagrad_steps(CaseBuilder& d) {
  const UpdateCase u = kCase(d);
  const Value h = u.moment();
  mark_all(d, ops::adagrad_step(d.graph, {u.p, u.g, u.lr, u.scale, h},
                                {.eps = 0.1, .weight_decay = 0.1, .lr_scale = 0.3}));
  mark_all(d, ops::adagrad_step(d.graph, {u.p, u.g, u.lr, u.scale, h}, {.eps = 1e-3}));
  const ParameterGradient rows = u.rows();
  mark_all(d, ops::adagrad_step(d.graph, {u.p, rows, u.lr, u.scale, h, rows.ids}, {.eps = 1e-3}));
}
// n is at least q^2, as a mean of squares is.
template <UpdateCase (*kCase)(CaseBuilder&)>
void graves_steps(CaseBuilder& d) {
  const UpdateCase u = kCase(d);
  const Value q = d.normal(u.shape), before = u.state();
  const Value n = ops::add(d.graph, ops::square(d.graph, q), d.positive(u.shape));
  const ops::GravesOperands whole{u.p, u.g, u.lr, u.scale, n, q, before};
  mark_all(d, ops::rmsprop_step(d.graph, whole, {}));
  mark_all(d, ops::rmsprop_step(d.graph, whole,
                                {.keep = 0.5, .momentum = 0.5, .eps = 0.1, .weight_decay = 0.1}));
  const ParameterGradient rows = u.rows();
  mark_all(d, ops::rmsprop_step(d.graph, {u.p, rows, u.lr, u.scale, n, q, before, rows.ids}, {}));
}

void small_group_ids(CaseBuilder& d) {
  mark_all(d, d.graph.add(kGroupIds, {d.below({7, 6}, 19)}, GroupIdsAttrs{0, 17}));
}
// Ids of several chunks, some of them beyond the table; and few ids, each very often.
void large_group_ids(CaseBuilder& d) {
  mark_all(d, d.graph.add(kGroupIds, {d.below({kManyRows, 7}, 5003)}, GroupIdsAttrs{0, 5000}));
  mark_all(d, d.graph.add(kGroupIds, {d.below({kManyRows}, 3)}, GroupIdsAttrs{1, 3}));
}
template <UpdateCase (*kCase)(CaseBuilder&)>
void group_sums(CaseBuilder& d) {
  const ParameterGradient few =
      ops::row_gradient(d.graph, d.below({1061}, 7), mixed(d, {1061, 67}), {.vocabulary = 7});
  d.mark({kCase(d).rows(), few});
}
template <UpdateCase (*kCase)(CaseBuilder&)>
void square_sums(CaseBuilder& d) {
  const UpdateCase u = kCase(d);
  const ParameterGradient rows = u.rows();
  d.mark({ops::sum_squares(d.graph, u.g), ops::sum_squares(d.graph, rows, rows.ids, u.shape[0])});
}
// The norm of n tensors, whose sums of squares lie many powers of two apart.
void sized_norm(CaseBuilder& d, std::int64_t n) {
  std::vector<Value> squares;
  for (std::int64_t i = 0; i < n; ++i) {
    squares.push_back(ops::sum_squares(d.graph, mixed(d, {1 + i % 3})));
  }
  d.mark({ops::total_norm(d.graph, squares)});
}
template <std::int64_t kTensors>
void norm_of(CaseBuilder& d) {
  sized_norm(d, kTensors);
}

// A parameter of n elements, without rows.
UpdateCase sized_update(CaseBuilder& d, std::int64_t n) { return {d, {n}, kEasy}; }
void sized_sgd(CaseBuilder& d, std::int64_t n) {
  const UpdateCase u = sized_update(d, n);
  mark_all(d, ops::sgd_step(d.graph, {u.p, u.g, u.lr, u.scale, u.state()},
                            {.momentum = 0.9, .weight_decay = 0.01, .lr_scale = 3}));
}
void sized_adam(CaseBuilder& d, std::int64_t n) {
  const UpdateCase u = sized_update(d, n);
  const ops::AdamOperands of{u.p, u.g, u.lr, u.scale, d.step(), u.state(), u.moment()};
  mark_all(d, ops::adam_step(d.graph, of, {.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}));
}
void sized_adagrad(CaseBuilder& d, std::int64_t n) {
  const UpdateCase u = sized_update(d, n);
  mark_all(d, ops::adagrad_step(d.graph, {u.p, u.g, u.lr, u.scale, u.moment()}, {}));
}
void sized_graves(CaseBuilder& d, std::int64_t n) {
  const UpdateCase u = sized_update(d, n);
  const Value q = d.normal(u.shape);
  const Value mean = ops::add(d.graph, ops::square(d.graph, q), u.moment());
  mark_all(d, ops::rmsprop_step(d.graph, {u.p, u.g, u.lr, u.scale, mean, q, u.state()}, {}));
}
void sized_squares(CaseBuilder& d, std::int64_t n) {
  d.mark({ops::sum_squares(d.graph, mixed(d, {n}))});
}

}  // namespace

const OpCaseTable& update_cases() {
  static const OpCaseTable table{
      {"sgd_step", {sgd_steps<small_update>, sgd_steps<large_update>, sized_sgd}},
      {"adam_step", {adam_steps<small_update>, adam_steps<large_update>, sized_adam}},
      {"adagrad_step", {adagrad_steps<small_update>, adagrad_steps<large_update>, sized_adagrad}},
      {"rmsprop_step", {graves_steps<small_update>, graves_steps<large_update>, sized_graves}},
      {"group_ids", {small_group_ids, large_group_ids}},
      {"sum_groups", {group_sums<small_update>, group_sums<large_update>}},
      {"sum_squares", {square_sums<small_update>, square_sums<large_update>, sized_squares}},
      {"total_norm", {norm_of<3>, norm_of<521>}}};
  return table;
}

}  // namespace keel::compare
