// Optimizer updates, element by element, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// The values that every update begins with.
struct Step {
  double rate, scale, decay;  // decay: the share of p that is added to g'
  Vector p, g, next_p;

  template <class Attrs>
  Step(const Binding& b, const Attrs& attrs)
      : rate(*b.inputs[UpdateInput::kLr].as<double>() * attrs.lr_scale),
        scale(b.inputs[UpdateInput::kScale] ? *b.inputs[UpdateInput::kScale].as<double>() : 1),
        decay(attrs.weight_decay),
        p(vector(b.inputs[UpdateInput::kP])),
        g(vector(b.inputs[UpdateInput::kG])),
        next_p(vector(b.outputs[UpdateOutput::kP])) {}

  double gradient(Eigen::Index e) const { return scale * g[e] + decay * p[e]; }
};

// A diverged step leaves everything as it is: output j becomes its own input inputs[j].
void keep(const Binding& b, std::initializer_list<std::size_t> inputs) {
  std::size_t output = 0;
  for (std::size_t input : inputs) {
    if (b.inputs[input]) vector(b.outputs[output]) = vector(b.inputs[input]);
    ++output;
  }
}

// p <- p - r u with u <- momentum u + g', or with Nesterov's look-ahead g' + momentum u.
void sgd(const Binding& b, const SgdAttrs& attrs) {
  using In = SgdInput;
  using Out = SgdOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kU});
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    const double u = b.inputs[In::kU] ? b.inputs[In::kU].as<double>()[e] : 0;
    const double next_u = attrs.momentum * u + gradient;
    const double direction = attrs.nesterov ? gradient + attrs.momentum * next_u : next_u;
    s.next_p[e] = s.p[e] - s.rate * direction;
    if (b.outputs[Out::kU]) b.outputs[Out::kU].as<double>()[e] = next_u;
  }
}

// p <- p - r mhat / (sqrt(vhat) + eps), where mhat and vhat are m and v without their bias to 0; or
// with eps beside the root of v as it is.
void adam(const Binding& b, const AdamAttrs& attrs) {
  using In = AdamInput;
  using Out = AdamOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kM, In::kV});
  const double t = double(*b.inputs[In::kStep].as<std::int32_t>()) + 1;
  const double base1 = attrs.release_bias ? 1 - attrs.beta1 : attrs.beta1;
  const double base2 = attrs.release_bias ? 1 - attrs.beta2 : attrs.beta2;
  const double c1 = 1 - std::pow(base1, t), c2 = 1 - std::pow(base2, t);
  if (attrs.decoupled) s.decay = 0;
  const double shrink = attrs.decoupled ? 1 - s.rate * attrs.weight_decay : 1;
  const Vector m = vector(b.inputs[In::kM]), v = vector(b.inputs[In::kV]);
  Vector next_m = vector(b.outputs[Out::kM]), next_v = vector(b.outputs[Out::kV]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_m[e] = attrs.beta1 * m[e] + (1 - attrs.beta1) * gradient;
    next_v[e] = attrs.beta2 * v[e] + (1 - attrs.beta2) * gradient * gradient;
    const double mhat = next_m[e] / c1, vhat = next_v[e] / c2;
    const double change = attrs.raw_eps
                              ? std::sqrt(c2) / c1 * next_m[e] / (std::sqrt(next_v[e]) + attrs.eps)
                              : mhat / (std::sqrt(vhat) + attrs.eps);
    s.next_p[e] = shrink * s.p[e] - s.rate * change;
  }
}

// p <- p - r g' / sqrt(h + eps), h being the sum of all squares so far.
void adagrad(const Binding& b, const AdagradAttrs& attrs) {
  using In = AdagradInput;
  using Out = AdagradOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kH});
  const Vector h = vector(b.inputs[In::kH]);
  Vector next_h = vector(b.outputs[Out::kH]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_h[e] = h[e] + gradient * gradient;
    s.next_p[e] = s.p[e] - s.rate * gradient / std::sqrt(next_h[e] + attrs.eps);
  }
}

// p <- p + d, d <- momentum d - r g' / sqrt(var + eps), var being the running variance of g'.
void graves(const Binding& b, const GravesAttrs& attrs) {
  using In = RmspropInput;
  using Out = RmspropOutput;
  Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kN, In::kQ, In::kD});
  const Vector n = vector(b.inputs[In::kN]), q = vector(b.inputs[In::kQ]),
               d = vector(b.inputs[In::kD]);
  Vector next_n = vector(b.outputs[Out::kN]), next_q = vector(b.outputs[Out::kQ]),
         next_d = vector(b.outputs[Out::kD]);
  for (Eigen::Index e = 0; e < s.p.size(); ++e) {
    const double gradient = s.gradient(e);
    next_n[e] = attrs.keep * n[e] + (1 - attrs.keep) * gradient * gradient;
    next_q[e] = attrs.keep * q[e] + (1 - attrs.keep) * gradient;
    const double var = std::max(next_n[e] - next_q[e] * next_q[e], 0.0);
    next_d[e] = attrs.momentum * d[e] - s.rate * gradient / std::sqrt(var + attrs.eps);
    s.next_p[e] = s.p[e] + next_d[e];
  }
}

// The gradient of a table, of which rows are given: dtable[ids[j]] = rows[j], and 0 elsewhere.
void write_out(const TensorRef& rows, const TensorRef& ids, Matrix dtable) {
  const Matrix from = matrix(rows, ids.elements(), dtable.cols());
  dtable.setZero();
  for (Eigen::Index j = 0; j < from.rows() && ids.as<std::int32_t>()[j] < dtable.rows(); ++j) {
    dtable.row(ids.as<std::int32_t>()[j]) = from.row(j);
  }
}

// The update of a table by rows: that of the whole table by the gradient that they are rows of or,
// when it is lazy, that of each of the rows.
template <class Attrs>
class TableUpdate {
 public:
  TableUpdate(void (*update)(const Binding&, const Attrs&), const Attrs& attrs, const Binding& b)
      : update_(update), attrs_(attrs), all_(b), part_(b), ids_(b.inputs.back()) {}

  void operator()() { attrs_.lazy ? each_row() : whole(); }

 private:
  void whole() {
    const TensorRef& p = all_.inputs[UpdateInput::kP];
    TensorRef& g = part_.inputs[UpdateInput::kG];
    g = {all_.workspace, p.type};
    write_out(all_.inputs[UpdateInput::kG], ids_, matrix(g, p.type.shape[0], p.type.shape[1]));
    update_(part_, attrs_);
  }

  void each_row() {
    const Shape& table = all_.inputs[UpdateInput::kP].type.shape;
    keep_all();
    for (std::int64_t j = 0; j < ids_.elements(); ++j) {
      const std::int64_t id = ids_.as<std::int32_t>()[j];
      if (id == table[0]) return;
      for (std::size_t i = 0; i < all_.inputs.size(); ++i) {
        const bool is_g = i == UpdateInput::kG;
        if (is_g || is_table(all_.inputs[i])) part_.inputs[i] = row(all_.inputs[i], is_g ? j : id);
      }
      for (std::size_t i = 0; i < all_.outputs.size(); ++i) {
        if (is_table(all_.outputs[i])) part_.outputs[i] = row(all_.outputs[i], id);
      }
      update_(part_, attrs_);
    }
  }

  // The tables among the inputs, but for g, are p and the states in the order of the outputs.
  void keep_all() {
    std::size_t output = 0;
    for (std::size_t i = 0; i < all_.inputs.size(); ++i) {
      if (i == UpdateInput::kG || !is_table(all_.inputs[i])) continue;
      vector(all_.outputs[output++]) = vector(all_.inputs[i]);
    }
  }
  bool is_table(const TensorRef& t) const {
    return t && t.type == all_.inputs[UpdateInput::kP].type;
  }
  static TensorRef row(const TensorRef& table, std::int64_t r) {
    const std::int64_t width = table.type.shape[1];
    return {table.as<double>() + r * width, {table.type.dtype, {width}}};
  }

  void (*update_)(const Binding&, const Attrs&);
  Attrs attrs_;
  Binding all_, part_;
  TensorRef ids_;
};

void sum_squares(const Binding& b) {
  *b.outputs[0].as<double>() = vector(b.inputs[0]).squaredNorm();
}

// The sum of squares of the whole gradient, which is written out in the workspace.
void sum_squares_of_rows(const Binding& b, std::int64_t vocabulary) {
  using In = SumSquaresInput;
  const std::int64_t width = b.inputs[In::kX].type.shape[1];
  const TensorRef dtable{b.workspace, {b.inputs[In::kX].type.dtype, {vocabulary, width}}};
  write_out(b.inputs[In::kX], b.inputs[In::kIds], matrix(dtable, vocabulary, width));
  *b.outputs[0].as<double>() = vector(dtable).squaredNorm();
}

void total_norm(const Binding& b) {
  double sum = 0;
  for (const TensorRef& squares : b.inputs) sum += *squares.as<double>();
  *b.outputs[0].as<double>() = std::sqrt(sum);
}

template <class In, class Attrs>
Prepared prepare(const NodeContext& context, void (*update)(const Binding&, const Attrs&)) {
  const auto& attrs = context.attrs<Attrs>();
  if (!context.has(In::kIds)) return kernel_of([=](const Binding& b) { update(b, attrs); });
  const std::int64_t elements = context.input(UpdateInput::kP).shape.elements();
  return {[=](const Binding& b) -> Kernel { return TableUpdate(update, attrs, b); },
          elements* std::int64_t(sizeof(double))};
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) { return prepare<SgdInput>(context, sgd); }
Prepared prepare_adam_step(const NodeContext& context) { return prepare<AdamInput>(context, adam); }
Prepared prepare_adagrad_step(const NodeContext& context) {
  return prepare<AdagradInput>(context, adagrad);
}
Prepared prepare_rmsprop_step(const NodeContext& context) {
  return prepare<RmspropInput>(context, graves);
}
Prepared prepare_sum_squares(const NodeContext& context) {
  using In = SumSquaresInput;
  if (!context.has(In::kIds)) return kernel_of(sum_squares);
  const std::int64_t vocabulary = context.attrs<SumSquaresAttrs>().vocabulary;
  return kernel_of([=](const Binding& b) { sum_squares_of_rows(b, vocabulary); },
                   vocabulary * context.input(In::kX).shape[1] * std::int64_t(sizeof(double)));
}
Prepared prepare_total_norm(const NodeContext&) { return kernel_of(total_norm); }

}  // namespace keel::reference
