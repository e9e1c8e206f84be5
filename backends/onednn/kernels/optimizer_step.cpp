// Optimizer updates in one pass over the tensors, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <cmath>
#include <cstring>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/optimizer_kernels.h"
#include "backends/onednn/threads.h"

namespace keel::onednn {
namespace {

// What every update begins with.
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

// A diverged step leaves everything as it is: output j becomes its own input inputs[j].
void keep(const Binding& b, std::initializer_list<std::size_t> inputs) {
  std::size_t output = 0;
  for (std::size_t i : inputs) {
    const TensorRef &from = b.inputs[i], &to = b.outputs[output++];
    if (from && from.data != to.data) {
      std::memcpy(to.data, from.data, std::size_t(from.type.bytes()));
    }
  }
}

void sgd(const Binding& b, const SgdAttrs& attrs) {
  using In = SgdInput;
  using Out = SgdOutput;
  const Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kU});
  const SgdTerms terms{float(s.scale), float(attrs.weight_decay), float(attrs.momentum),
                       float(s.rate), attrs.nesterov};
  const float *p = in(b, In::kP), *g = in(b, In::kG), *u = in(b, In::kU);
  float *next_p = out(b, Out::kP), *next_u = out(b, Out::kU);
  parallel_range(s.n, kBlockElements, [&](std::int64_t i, std::int64_t end) {
    const SgdSpan span{p + i,
                       g + i,
                       u ? u + i : nullptr,
                       next_p + i,
                       u ? next_u + i : nullptr,
                       std::size_t(end - i)};
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

void adam(const Binding& b, const AdamAttrs& attrs) {
  using In = AdamInput;
  using Out = AdamOutput;
  const Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kM, In::kV});
  const AdamTerms terms = adam_terms(attrs, s, double(*b.inputs[In::kStep].as<std::int32_t>()) + 1);
  const float *p = in(b, In::kP), *g = in(b, In::kG), *m = in(b, In::kM), *v = in(b, In::kV);
  float *next_p = out(b, Out::kP), *next_m = out(b, Out::kM), *next_v = out(b, Out::kV);
  parallel_range(s.n, kBlockElements, [&](std::int64_t i, std::int64_t end) {
    adam_span(terms, {p + i, g + i, m + i, v + i, next_p + i, next_m + i, next_v + i,
                      std::size_t(end - i)});
  });
}

void adagrad(const Binding& b, const AdagradAttrs& attrs) {
  using In = AdagradInput;
  using Out = AdagradOutput;
  const Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kH});
  const AdagradTerms terms{float(s.scale), float(attrs.weight_decay), float(s.rate),
                           float(attrs.eps)};
  const float *p = in(b, In::kP), *g = in(b, In::kG), *h = in(b, In::kH);
  float *next_p = out(b, Out::kP), *next_h = out(b, Out::kH);
  parallel_range(s.n, kBlockElements, [&](std::int64_t i, std::int64_t end) {
    adagrad_span(terms, {p + i, g + i, h + i, next_p + i, next_h + i, std::size_t(end - i)});
  });
}

void graves(const Binding& b, const GravesAttrs& attrs) {
  using In = GravesInput;
  using Out = GravesOutput;
  const Step s(b, attrs);
  if (!std::isfinite(s.scale)) return keep(b, {In::kP, In::kN, In::kQ, In::kD});
  const GravesTerms terms{float(s.scale),        float(attrs.weight_decay), float(attrs.keep),
                          float(1 - attrs.keep), float(attrs.momentum),     float(s.rate),
                          float(attrs.eps)};
  const float *p = in(b, In::kP), *g = in(b, In::kG), *n = in(b, In::kN), *q = in(b, In::kQ),
              *d = in(b, In::kD);
  float *next_p = out(b, Out::kP), *next_n = out(b, Out::kN), *next_q = out(b, Out::kQ),
        *next_d = out(b, Out::kD);
  parallel_range(s.n, kBlockElements, [&](std::int64_t i, std::int64_t end) {
    graves_span(terms, {p + i, g + i, n + i, q + i, d + i, next_p + i, next_n + i, next_q + i,
                        next_d + i, std::size_t(end - i)});
  });
}

// Each block has a partial sum, and those are added up in the order of the blocks.
void sum_squares(const Binding& b) {
  const float* x = b.inputs[0].as<float>();
  const std::int64_t n = b.inputs[0].elements();
  double* partial = static_cast<double*>(b.workspace);
  parallel_range(n, kBlockElements, [&](std::int64_t begin, std::int64_t end) {
    partial[begin / kBlockElements] = square_sum(x + begin, std::size_t(end - begin));
  });
  double total = 0;
  for (std::int64_t i = 0; i * kBlockElements < n; ++i) total += partial[i];
  *b.outputs[0].as<float>() = float(total);
}

template <class Attrs>
Prepared prepare(const NodeContext& context, void (*update)(const Binding&, const Attrs&)) {
  return kernel_of([=, attrs = context.attrs<Attrs>()](const Binding& b) { update(b, attrs); });
}

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) { return prepare(context, sgd); }
Prepared prepare_adam_step(const NodeContext& context) { return prepare(context, adam); }
Prepared prepare_adagrad_step(const NodeContext& context) { return prepare(context, adagrad); }
Prepared prepare_graves_step(const NodeContext& context) { return prepare(context, graves); }

Prepared prepare_sum_squares(const NodeContext& context) {
  const std::int64_t blocks = context.input(0).shape.elements() / kBlockElements + 1;
  return kernel_of(sum_squares, blocks * std::int64_t(sizeof(double)));
}

}  // namespace keel::onednn
