// Attention: each head of each row of the batch in turn, query by query, over the visible keys.
#include "src/ops/attention.h"

#include <cmath>
#include <numbers>

#include "backends/reference/kernels/kernels.h"
#include "src/core/bf16.h"

namespace keel::reference {
namespace {

using In = AttentionInput;

// A head's features of one row of the batch: (queries or keys, width of a head).
using Slice = Eigen::Map<Matrix::PlainObject, 0, Eigen::OuterStride<>>;

// One head of one row of the batch.
struct Head {
  const Binding& b;
  const AttentionAttrs& attrs;
  AttentionSizes sizes;
  bool is_narrow;  // q, k and v are bf16
  std::int64_t row, head;

  // A probability, its gradient or dy as a product reads it.
  double factor(double value) const { return is_narrow ? rounded_to_bf16(value) : value; }
  Slice slice(const TensorRef& t) const {
    const std::int64_t length = t.type.shape[1], d = sizes.features();
    return {t.as<double>() + row * length * d + head * sizes.width, length, sizes.width,
            Eigen::OuterStride<>(d)};
  }
  double& lse(const TensorRef& t, std::int64_t i) const {
    return t.as<double>()[(row * sizes.heads + head) * sizes.queries + i];
  }
  bool sees(std::int64_t i, std::int64_t j) const {
    if (attrs.causal && j > i + sizes.diagonal()) return false;
    const TensorRef& mask = b.inputs[In::kKeyMask];
    return !mask || mask.as<std::uint8_t>()[row * sizes.keys + j] != 0;
  }
  // Dropout's factor of the probability of key j: 0 or 1 / (1 - p).
  double keep(std::int64_t i, std::int64_t j) const {
    if (attrs.p == 0) return 1;
    const auto scalar = [&](int input) {
      return static_cast<std::uint32_t>(*b.inputs[std::size_t(input)].as<std::int32_t>());
    };
    const Philox random(static_cast<std::uint64_t>(attrs.seed),
                        static_cast<std::uint32_t>(attrs.stream), scalar(In::kStep));
    const std::uint32_t bits =
        attention_bits(random, scalar(In::kFirstRow) + static_cast<std::uint32_t>(row),
                       static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(i),
                       static_cast<std::uint64_t>(j));
    return (bits >> 8) * 0x1p-24 >= attrs.p ? 1 / (1 - attrs.p) : 0;
  }
  // scale q_i k_j for every key, -infinity for those that query i does not see.
  Eigen::VectorXd scores(std::int64_t i) const {
    const Slice q = slice(b.inputs[In::kQ]), k = slice(b.inputs[In::kK]);
    Eigen::VectorXd scores = Eigen::VectorXd::Constant(sizes.keys, -INFINITY);
    const double scale = attention_scale(attrs, sizes);
    for (std::int64_t j = 0; j < sizes.keys; ++j) {
      if (sees(i, j)) scores[j] = scale * q.row(i).dot(k.row(j));
    }
    return scores;
  }
};

// log sum exp(score); 0 for no score.
double log_sum_exp(const Eigen::VectorXd& scores) {
  if ((scores.array() == -INFINITY).all()) return 0;
  double max = -INFINITY, sum = 0;
  for (double score : scores) max = std::fmax(max, score);
  for (double score : scores) sum += std::exp(score - max);
  return max + std::log(sum);
}

// The next multiple of log 2.
double shift_above(double lse) { return std::ceil(lse / std::numbers::ln2) * std::numbers::ln2; }

// y_i = sum over j of keep P_j v_j, P_j = exp(score_j - lse). A factor of bf16 is P_j times the sum
// of exponentials, which a power of 2 scales.
void forward(const Head& h) {
  const Slice v = h.slice(h.b.inputs[In::kV]);
  Slice y = h.slice(h.b.outputs[AttentionOutput::kY]);
  y.setZero();
  for (std::int64_t i = 0; i < h.sizes.queries; ++i) {
    const Eigen::VectorXd scores = h.scores(i);
    const double lse = log_sum_exp(scores);
    h.lse(h.b.outputs[AttentionOutput::kLse], i) = lse;
    const double shift = h.is_narrow ? shift_above(lse) : lse;
    for (std::int64_t j = 0; j < h.sizes.keys; ++j) {
      if (!h.sees(i, j)) continue;
      const double p = h.factor(std::exp(scores[j] - shift)) * std::exp(shift - lse);
      y.row(i) += h.keep(i, j) * p * v.row(j);
    }
  }
}

void backward(const Head& h) {
  const auto in = [&](int place) { return h.slice(h.b.inputs[std::size_t(place)]); };
  const Slice q = in(In::kQ), k = in(In::kK), v = in(In::kV), y = in(In::kY), dy = in(In::kDy);
  Slice dq = h.slice(h.b.outputs[AttentionGradient::kDq]);
  Slice dk = h.slice(h.b.outputs[AttentionGradient::kDk]);
  Slice dv = h.slice(h.b.outputs[AttentionGradient::kDv]);
  for (Slice* d : {&dq, &dk, &dv}) d->setZero();
  const double scale = attention_scale(h.attrs, h.sizes);
  for (std::int64_t i = 0; i < h.sizes.queries; ++i) {
    const Eigen::VectorXd scores = h.scores(i);
    const Eigen::VectorXd g = dy.row(i).unaryExpr([&](double v) { return h.factor(v); });
    const double delta = g.dot(y.row(i));
    for (std::int64_t j = 0; j < h.sizes.keys; ++j) {
      if (!h.sees(i, j)) continue;
      const double p = std::exp(scores[j] - h.lse(h.b.inputs[In::kLse], i)), keep = h.keep(i, j);
      const double ds = h.factor(p * (keep * g.dot(v.row(j)) - delta));
      dv.row(j) += keep * h.factor(p) * g;
      dq.row(i) += scale * ds * k.row(j);
      dk.row(j) += scale * ds * q.row(i);
    }
  }
}

Prepared prepare(const NodeContext& context, void (*run)(const Head&)) {
  const auto attrs = context.attrs<AttentionAttrs>();
  const AttentionSizes sizes =
      attention_sizes(context.input(In::kQ).shape, context.input(In::kK).shape, attrs.heads);
  const bool is_narrow = context.input(In::kQ).dtype == DType::kBF16;
  return kernel_of([=](const Binding& b) {
    for (std::int64_t row = 0; row < sizes.batch; ++row) {
      for (std::int64_t head = 0; head < sizes.heads; ++head) {
        run({b, attrs, sizes, is_narrow, row, head});
      }
    }
  });
}

}  // namespace

Prepared prepare_attention(const NodeContext& context) { return prepare(context, forward); }
Prepared prepare_attention_backward(const NodeContext& context) {
  return prepare(context, backward);
}

}  // namespace keel::reference
