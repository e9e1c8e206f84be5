// Relative attention: each head of each row of the batch in turn, query by query, over the keys
// that the query sees.
#include "src/ops/relative_attention.h"

#include <cmath>
#include <numbers>

#include "backends/reference/kernels/kernels.h"
#include "src/core/bf16.h"

namespace keel::reference {
namespace {

using In = RelativeAttentionInput;
using Out = RelativeAttentionOutput;
using Gradient = RelativeAttentionGradient;

// A head's features of one row of the batch, or of the distances: (positions, width of a head).
using Slice = Eigen::Map<Matrix::PlainObject, 0, Eigen::OuterStride<>>;

// One head of one row of the batch.
struct Head {
  const Binding& b;
  const RelativeAttentionAttrs& attrs;
  RelativeSizes sizes;
  bool is_narrow;  // factors are bf16
  std::int64_t row, head;

  // A probability, its gradient or dy as a product reads it.
  double factor(double value) const { return is_narrow ? rounded_to_bf16(value) : value; }

  // This head's slice of a tensor (b, positions, d), or of one (distances, d) that all rows share.
  Slice slice(const TensorRef& t) const {
    const Shape& shape = t.type.shape;
    const std::int64_t d = sizes.features(), length = shape[shape.rank() - 2];
    const std::int64_t first = shape.rank() == 3 ? row * length * d : 0;
    return {t.as<double>() + first + head * sizes.width, length, sizes.width,
            Eigen::OuterStride<>(d)};
  }
  Slice in(int place) const { return slice(b.inputs[std::size_t(place)]); }
  Slice out(int place) const { return slice(b.outputs[std::size_t(place)]); }
  double& lse(const TensorRef& t, std::int64_t i) const {
    return t.as<double>()[(row * sizes.heads + head) * sizes.queries + i];
  }
  std::int64_t first_key(std::int64_t i) const {
    const TensorRef& filled = b.inputs[In::kFilled];
    return first_key_seen(sizes, attrs.window,
                          filled ? filled.as<std::int32_t>()[row] : sizes.memory(), i);
  }
  std::int64_t last_key(std::int64_t i) const { return i + sizes.memory(); }
  // The row of p for the distance between query i and key j.
  std::int64_t distance(std::int64_t i, std::int64_t j) const {
    return std::min(i + sizes.memory() - j, sizes.distances - 1);
  }
  double scale() const { return relative_scale(attrs, sizes.width); }
  double score(std::int64_t i, std::int64_t j) const {
    return scale() * (in(In::kQk).row(i).dot(in(In::kK).row(j)) +
                      in(In::kQp).row(i).dot(in(In::kP).row(distance(i, j))));
  }
};

// log sum exp(s_ij) over the keys that query i sees.
double log_sum_exp(const Head& h, std::int64_t i) {
  double max = -INFINITY, sum = 0;
  for (std::int64_t j = h.first_key(i); j <= h.last_key(i); ++j)
    max = std::fmax(max, h.score(i, j));
  for (std::int64_t j = h.first_key(i); j <= h.last_key(i); ++j)
    sum += std::exp(h.score(i, j) - max);
  return max + std::log(sum);
}

// A factor of bf16 is a probability times the sum of exponentials, which a power of 2 scales.
void forward(const Head& h) {
  Slice y = h.out(Out::kY);
  y.setZero();
  for (std::int64_t i = 0; i < h.sizes.queries; ++i) {
    const double lse = log_sum_exp(h, i);
    h.lse(h.b.outputs[Out::kLse], i) = lse;
    const double shift = h.is_narrow ? std::ceil(lse / std::numbers::ln2) * std::numbers::ln2 : lse;
    for (std::int64_t j = h.first_key(i); j <= h.last_key(i); ++j) {
      const double p = h.factor(std::exp(h.score(i, j) - shift)) * std::exp(shift - lse);
      y.row(i) += p * h.in(In::kV).row(j);
    }
  }
}

// Adds to dp; the other results are the row's own.
void backward(const Head& h) {
  const Slice qk = h.in(In::kQk), qp = h.in(In::kQp), k = h.in(In::kK), v = h.in(In::kV),
              p = h.in(In::kP), y = h.in(In::kY), dy = h.in(In::kDy);
  Slice dqk = h.out(Gradient::kDqk), dqp = h.out(Gradient::kDqp), dk = h.out(Gradient::kDk),
        dv = h.out(Gradient::kDv), dp = h.out(Gradient::kDp);
  for (Slice* d : {&dqk, &dqp, &dk, &dv}) d->setZero();
  for (std::int64_t i = 0; i < h.sizes.queries; ++i) {
    const Eigen::VectorXd g = dy.row(i).unaryExpr([&](double x) { return h.factor(x); });
    const double lse = h.lse(h.b.inputs[In::kLse], i), delta = g.dot(y.row(i));
    for (std::int64_t j = h.first_key(i); j <= h.last_key(i); ++j) {
      const std::int64_t r = h.distance(i, j);
      const double probability = std::exp(h.score(i, j) - lse);
      const double ds = h.factor(probability * (g.dot(v.row(j)) - delta));
      dv.row(j) += h.factor(probability) * g;
      dqk.row(i) += h.scale() * ds * k.row(j);
      dqp.row(i) += h.scale() * ds * p.row(r);
      dk.row(j) += h.scale() * ds * qk.row(i);
      dp.row(r) += h.scale() * ds * qp.row(i);
    }
  }
}

struct HeadRunner {
  RelativeAttentionAttrs attrs;
  bool is_narrow;
  void (*run)(const Head&);
};

HeadRunner runner_of(const NodeContext& context, void (*run)(const Head&)) {
  return {context.attrs<RelativeAttentionAttrs>(), context.input(In::kQk).dtype == DType::kBF16,
          run};
}

void by_heads(const Binding& b, const HeadRunner& of) {
  const auto shape = [&](int place) { return b.inputs[std::size_t(place)].type.shape; };
  const RelativeSizes sizes =
      relative_sizes(shape(In::kQk), shape(In::kK), shape(In::kP), of.attrs.heads);
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      of.run({b, of.attrs, sizes, of.is_narrow, row, head});
    }
  }
}

}  // namespace

Prepared prepare_relative_attention(const NodeContext& context) {
  return kernel_of([of = runner_of(context, forward)](const Binding& b) { by_heads(b, of); });
}

Prepared prepare_relative_attention_backward(const NodeContext& context) {
  return kernel_of([of = runner_of(context, backward)](const Binding& b) {
    vector(b.outputs[Gradient::kDp]).setZero();
    by_heads(b, of);
  });
}

}  // namespace keel::reference
