// Optimizer updates in one pass over the tensors, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/optimizer_kernels.h"

namespace keel::onednn {
namespace {

// The values that every update begins with.
struct Step {
  double rate, scale;
  std::int64_t n;

  template <class Attrs>
  Step(const Binding& b, const Attrs& attrs)
      : rate(double(*b.inputs[UpdateInput::kLr].as<float>()) * attrs.lr_scale),
        scale(b.inputs[UpdateInput::kScale] ? *b.inputs[UpdateInput::kScale].as<float>() : 1),
        n(b.inputs[UpdateInput::kP].elements()) {}
};

const float* in(const Binding& b, int place) { return b.inputs[std::size_t(place)].as<float>(); }
float* out(const Binding& b, int place) { return b.outputs[std::size_t(place)].as<float>(); }

// Output j becomes its own input inputs[j].
void keep(const Binding& b, std::initializer_list<std::size_t> inputs) {
  std::size_t output = 0;
  for (std::size_t i : inputs) {
    const TensorRef &from = b.inputs[i], &to = b.outputs[output++];
    if (from && from.data != to.data) {
      std::memcpy(to.data, from.data, std::size_t(from.type.bytes()));
    }
  }
}

// A gradient like p. Each kind of gradient calls an update with the first element, the one after
// the last, and g from the first on.
struct WholeGradient {
  const float* g;
  explicit WholeGradient(const Binding& b) : g(in(b, UpdateInput::kG)) {}

  template <class Update>
  void for_each(std::int64_t n, const Update& update) const {
    parallel_range(n, kBlockElements,
                   [&](std::int64_t i, std::int64_t end) { update(i, end, g + i); });
  }
};

// Rows of a gradient, whose ids are the last input; every element of p is updated.
struct RowsGradient : TableRows {
  explicit RowsGradient(const Binding& b)
      : TableRows{b.inputs.back().as<std::int32_t>(), in(b, UpdateInput::kG),
                  b.inputs.back().elements(), b.inputs[UpdateInput::kP].type.shape[1]} {}

  template <class Update>
  void for_each(std::int64_t n, const Update& update) const {
    alignas(64) static constexpr float kZeros[kPieceElements] = {};
    parallel_range(n, kBlockElements, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float piece[kPieceElements];
      for (std::int64_t i = begin; i < end; i += kPieceElements) {
        const std::int64_t to = std::min(i + kPieceElements, end);
        update(i, to, write_out(i, to, piece) ? piece : kZeros);
      }
    });
  }
};

// The same, for updates that leave rows without a gradient as they are.
struct SparedRows : RowsGradient {
  using RowsGradient::RowsGradient;

  template <class Update>
  void for_each(std::int64_t elements, const Update& update) const {
    const std::int64_t found = first_from(elements / std::max<std::int64_t>(width, 1));
    const std::int64_t block = kBlockElements / std::max<std::int64_t>(width, 1) + 1;
    parallel_range(found, block, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t j = first; j < end; ++j) {
        update(ids[j] * width, (ids[j] + 1) * width, rows + j * width);
      }
    });
  }
};

// A diverged step leaves everything as it is, and an update of some rows all others. Returns
// whether the step diverged.
template <class Gradient>
bool keeps(const Step& s, const Binding& b, std::initializer_list<std::size_t> inputs) {
  const bool diverged = !std::isfinite(s.scale);
  if (diverged || std::is_same_v<Gradient, SparedRows>) keep(b, inputs);
  return diverged;
}

template <class Gradient>
void sgd(const Binding& b, const SgdAttrs& attrs) {
  using In = SgdInput;
  using Out = SgdOutput;
  const Step s(b, attrs);
  if (keeps<Gradient>(s, b, {In::kP, In::kU})) return;
  const SgdTerms terms{float(s.scale), float(attrs.weight_decay), float(attrs.momentum),
                       float(s.rate), attrs.nesterov};
  const float *p = in(b, In::kP), *u = in(b, In::kU);
  float *next_p = out(b, Out::kP), *next_u = out(b, Out::kU);
  Gradient(b).for_each(s.n, [&](std::int64_t i, std::int64_t end, const float* g) {
    const SgdSpan span{
        p + i, g, u ? u + i : nullptr, next_p + i, u ? next_u + i : nullptr, std::size_t(end - i)};
    sgd_span(terms, span);
  });
}

AdamTerms adam_terms(const AdamAttrs& attrs, const Step& s, double t) {
  const auto unbias = [&](double beta) {
    return 1 - std::pow(attrs.release_bias ? 1 - beta : beta, t);
  };
  const double c1 = unbias(attrs.beta1), c2 = unbias(attrs.beta2);
  return {
      .scale = float(s.scale),
      .decay = float(attrs.decoupled ? 0 : attrs.weight_decay),
      .beta1 = float(attrs.beta1),
      .gain1 = float(1 - attrs.beta1),
      .beta2 = float(attrs.beta2),
      .gain2 = float(1 - attrs.beta2),
      .shrink = float(attrs.decoupled ? 1 - s.rate * attrs.weight_decay : 1),
      .rate = float(attrs.raw_eps ? s.rate * std::sqrt(c2) / c1 : s.rate / c1),
      .unbias = float(attrs.raw_eps ? 1 : 1 / c2),
      .eps = float(attrs.eps),
  };
}

template <class Gradient>
void adam(const Binding& b, const AdamAttrs& attrs) {
  using In = AdamInput;
  using Out = AdamOutput;
  const Step s(b, attrs);
  if (keeps<Gradient>(s, b, {In::kP, In::kM, In::kV})) return;
  const AdamTerms terms = adam_terms(attrs, s, double(*b.inputs[In::kStep].as<std::int32_t>()) + 1);
  const float *p = in(b, In::kP), *m = in(b, In::kM), *v = in(b, In::kV);
  float *next_p = out(b, Out::kP), *next_m = out(b, Out::kM), *next_v = out(b, Out::kV);
  Gradient(b).for_each(s.n, [&](std::int64_t i, std::int64_t end, const float* g) {
    adam_span(terms,
              {p + i, g, m + i, v + i, next_p + i, next_m + i, next_v + i, std::size_t(end - i)});
  });
}

template <class Gradient>
void adagrad(const Binding& b, const AdagradAttrs& attrs) {
  using In = AdagradInput;
  using Out = AdagradOutput;
  const Step s(b, attrs);
  if (keeps<Gradient>(s, b, {In::kP, In::kH})) return;
  const AdagradTerms terms{float(s.scale), float(attrs.weight_decay), float(s.rate),
                           float(attrs.eps)};
  const float *p = in(b, In::kP), *h = in(b, In::kH);
  float *next_p = out(b, Out::kP), *next_h = out(b, Out::kH);
  Gradient(b).for_each(s.n, [&](std::int64_t i, std::int64_t end, const float* g) {
    adagrad_span(terms, {p + i, g, h + i, next_p + i, next_h + i, std::size_t(end - i)});
  });
}

template <class Gradient>
void graves(const Binding& b, const GravesAttrs& attrs) {
  using In = RmspropInput;
  using Out = RmspropOutput;
  const Step s(b, attrs);
  if (keeps<Gradient>(s, b, {In::kP, In::kN, In::kQ, In::kD})) return;
  const GravesTerms terms{float(s.scale),        float(attrs.weight_decay), float(attrs.keep),
                          float(1 - attrs.keep), float(attrs.momentum),     float(s.rate),
                          float(attrs.eps)};
  const float *p = in(b, In::kP), *n = in(b, In::kN), *q = in(b, In::kQ), *d = in(b, In::kD);
  float *next_p = out(b, Out::kP), *next_n = out(b, Out::kN), *next_q = out(b, Out::kQ),
        *next_d = out(b, Out::kD);
  Gradient(b).for_each(s.n, [&](std::int64_t i, std::int64_t end, const float* g) {
    graves_span(terms, {p + i, g, n + i, q + i, d + i, next_p + i, next_n + i, next_q + i,
                        next_d + i, std::size_t(end - i)});
  });
}

// Each block has a partial sum, and those are added up in the order of the blocks.
template <class BlockSum>
void sum_squares(const Binding& b, std::int64_t n, const BlockSum& block_sum) {
  double* partial = static_cast<double*>(b.workspace);
  parallel_range(n, kBlockElements, [&](std::int64_t begin, std::int64_t end) {
    partial[begin / kBlockElements] = block_sum(begin, std::size_t(end - begin));
  });
  double total = 0;
  for (std::int64_t i = 0; i * kBlockElements < n; ++i) total += partial[i];
  *b.outputs[0].as<float>() = float(total);
}

void sum_all_squares(const Binding& b) {
  const float* x = in(b, SumSquaresInput::kX);
  sum_squares(b, b.inputs[SumSquaresInput::kX].elements(),
              [&](std::int64_t begin, std::size_t n) { return square_sum(x + begin, n); });
}

void sum_row_squares(const Binding& b, std::int64_t elements) {
  using In = SumSquaresInput;
  const Shape& shape = b.inputs[In::kX].type.shape;
  const TableRows rows{b.inputs[In::kIds].as<std::int32_t>(), in(b, In::kX), shape[0], shape[1]};
  sum_squares(b, elements,
              [&](std::int64_t begin, std::size_t n) { return square_sum(rows, begin, n); });
}

void total_norm(const Binding& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) sum += *in(b, int(i));
  *out(b, 0) = float(std::sqrt(sum));
}

template <class Attrs>
using UpdateOf = void (*)(const Binding&, const Attrs&);

template <class Attrs>
Prepared prepare(const NodeContext& context, UpdateOf<Attrs> update) {
  return kernel_of([=, attrs = context.attrs<Attrs>()](const Binding& b) { update(b, attrs); });
}

// The forms of an update by the kind of its gradient.
template <class Attrs>
struct UpdateForms {
  UpdateOf<Attrs> whole, rows, spared;

  Prepared prepare(const NodeContext& context, bool has_ids, bool spares) const {
    return onednn::prepare(context, !has_ids ? whole : spares ? spared : rows);
  }
};

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  const UpdateForms<SgdAttrs> forms{sgd<WholeGradient>, sgd<RowsGradient>, sgd<SparedRows>};
  const bool spares = spares_rows(context.attrs<SgdAttrs>(), context.has(SgdInput::kU));
  return forms.prepare(context, context.has(SgdInput::kIds), spares);
}
Prepared prepare_adam_step(const NodeContext& context) {
  const UpdateForms<AdamAttrs> forms{adam<WholeGradient>, adam<RowsGradient>, adam<SparedRows>};
  const bool spares = spares_rows(context.attrs<AdamAttrs>());
  return forms.prepare(context, context.has(AdamInput::kIds), spares);
}
Prepared prepare_adagrad_step(const NodeContext& context) {
  const UpdateForms<AdagradAttrs> forms{adagrad<WholeGradient>, adagrad<RowsGradient>,
                                        adagrad<SparedRows>};
  const bool spares = spares_rows(context.attrs<AdagradAttrs>());
  return forms.prepare(context, context.has(AdagradInput::kIds), spares);
}
Prepared prepare_rmsprop_step(const NodeContext& context) {
  const UpdateForms<GravesAttrs> forms{graves<WholeGradient>, graves<RowsGradient>,
                                       graves<SparedRows>};
  const bool spares = spares_rows(context.attrs<GravesAttrs>());
  return forms.prepare(context, context.has(RmspropInput::kIds), spares);
}

Prepared prepare_sum_squares(const NodeContext& context) {
  using In = SumSquaresInput;
  const Shape& x = context.input(In::kX).shape;
  const bool has_ids = context.has(In::kIds);
  const std::int64_t elements =
      has_ids ? context.attrs<SumSquaresAttrs>().vocabulary * x[1] : x.elements();
  const std::int64_t bytes = (elements / kBlockElements + 1) * std::int64_t(sizeof(double));
  if (!has_ids) return kernel_of(sum_all_squares, bytes);
  return kernel_of([=](const Binding& b) { sum_row_squares(b, elements); }, bytes);
}

Prepared prepare_total_norm(const NodeContext&) { return kernel_of(total_norm); }

}  // namespace keel::onednn
