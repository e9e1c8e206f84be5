// Optimizer updates in one pass over the tensors, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <cmath>
#include <cstring>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/optimizer_kernels.h"
#include "backends/onednn/threads.h"

namespace keel::onednn {
namespace {

double scalar_or(const TensorRef& t, double otherwise) { return t ? *t.as<float>() : otherwise; }

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
  const double lr = scalar_or(b.inputs[2], 0), scale = scalar_or(b.inputs[3], 1);
  if (!std::isfinite(scale)) return keep(b, {0, 4});
  const SgdTerms terms{float(scale), float(attrs.weight_decay), float(attrs.momentum), float(lr),
                       attrs.nesterov};
  const float *p = b.inputs[0].as<float>(), *g = b.inputs[1].as<float>();
  const float* u = b.inputs[4].as<float>();
  float *next_p = b.outputs[0].as<float>(), *next_u = b.outputs[1].as<float>();
  parallel_range(b.inputs[0].elements(), kBlockElements, [&](std::int64_t i, std::int64_t end) {
    const SgdSpan span{p + i,
                       g + i,
                       u ? u + i : nullptr,
                       next_p + i,
                       u ? next_u + i : nullptr,
                       std::size_t(end - i)};
    sgd_span(terms, span);
  });
}

void adam(const Binding& b, const AdamAttrs& attrs) {
  const double lr = scalar_or(b.inputs[2], 0), scale = scalar_or(b.inputs[3], 1);
  if (!std::isfinite(scale)) return keep(b, {0, 5, 6});
  const double t = double(*b.inputs[4].as<std::int32_t>()) + 1;
  const double decay = attrs.decoupled ? 0 : attrs.weight_decay;
  const double shrink = attrs.decoupled ? 1 - lr * attrs.weight_decay : 1;
  const AdamTerms terms{
      .scale = float(scale),
      .decay = float(decay),
      .beta1 = float(attrs.beta1),
      .gain1 = float(1 - attrs.beta1),
      .beta2 = float(attrs.beta2),
      .gain2 = float(1 - attrs.beta2),
      .shrink = float(shrink),
      .rate = float(lr / (1 - std::pow(attrs.beta1, t))),
      .unbias = float(1 / (1 - std::pow(attrs.beta2, t))),
      .eps = float(attrs.eps),
  };
  const float *p = b.inputs[0].as<float>(), *g = b.inputs[1].as<float>();
  const float *m = b.inputs[5].as<float>(), *v = b.inputs[6].as<float>();
  float *next_p = b.outputs[0].as<float>(), *next_m = b.outputs[1].as<float>(),
        *next_v = b.outputs[2].as<float>();
  parallel_range(b.inputs[0].elements(), kBlockElements, [&](std::int64_t i, std::int64_t end) {
    adam_span(terms, {p + i, g + i, m + i, v + i, next_p + i, next_m + i, next_v + i,
                      std::size_t(end - i)});
  });
}

// One partial sum for each block, added up in the order of the blocks.
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

}  // namespace

Prepared prepare_sgd_step(const NodeContext& context) {
  const auto attrs = context.attrs<SgdAttrs>();
  return kernel_of([attrs](const Binding& b) { sgd(b, attrs); });
}

Prepared prepare_adam_step(const NodeContext& context) {
  const auto attrs = context.attrs<AdamAttrs>();
  return kernel_of([attrs](const Binding& b) { adam(b, attrs); });
}

Prepared prepare_sum_squares(const NodeContext& context) {
  const std::int64_t blocks = context.input(0).shape.elements() / kBlockElements + 1;
  return kernel_of(sum_squares, blocks * std::int64_t(sizeof(double)));
}

}  // namespace keel::onednn
