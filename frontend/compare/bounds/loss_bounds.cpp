// Bounds of softmax, its logarithm, and losses on logits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/elementwise.h"
#include "src/ops/loss.h"
#include "src/ops/softmax.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

// exp, in units of eps: twice the 1.7 units in the last place of simd/math.h.
constexpr double kExpError = 3.4;

// A row of logits. keel's kernels: with d_i = max - x_i, exp(x_i - max) is off by d_i eps (the
// rounding of the difference) and kExpError eps, so their sum, in relative terms, by the mean of
// that under p and by sum_error. Any other: by (2.4 d_i + 4) eps, as an exponential of 2 is, and
// the row may be taken in tiles whose sums are scaled down as a larger maximum comes.
struct LogitRow {
  std::span<const double> x;
  bool is_any = false;
  double max = -std::numeric_limits<double>::infinity(), sum = 0, of_sum = 0;

  LogitRow(std::span<const double> row, Kernels kernels)
      : x(row), is_any(kernels == Kernels::kAny) {
    for (double v : x) max = std::max(max, v);
    double of_terms = 0;
    SumTerms terms;
    for (double v : x) {
      const double p = std::exp(v - max);
      sum += p;
      of_terms += p * of_exp(max - v);
      terms.add(p);
    }
    const double tiles = is_any ? 8 * kEps * std::sqrt(1 + double(x.size()) / kTile) : 0;
    of_sum =
        of_terms / sum + tiles + (is_any ? any_relative_error(terms) : sum_error(std::ssize(x)));
  }
  double p(std::size_t i) const { return std::exp(x[i] - max) / sum; }
  // The relative error of p_i: the exponential, the sum, its inverse and the product.
  double of_p(std::size_t i) const { return of_exp(max - x[i]) + (is_any ? 5 : 3) * kEps + of_sum; }
  double lse() const { return max + std::log(sum); }
  // The error of max + log(sum): log's own error, and the rounding of the sum and of the result.
  double of_lse() const {
    const double of_log = is_any ? 8 : 2 * kExpError;
    return of_sum + kEps * (of_log * std::abs(std::log(sum)) + 2 * std::abs(lse()));
  }

 private:
  static constexpr double kTile = 16;  // the least that a kernel takes at a time

  // The relative error of exp(-distance).
  double of_exp(double distance) const {
    return kEps * (is_any ? 2.4 * distance + 4 : distance + kExpError);
  }
};

// The sum of the sizes of terms times what rounding adds to it.
double of_sum(const SumTerms& terms, Kernels kernels) {
  return kernels == Kernels::kAny ? any_sum_error(terms).largest
                                  : sum_error(std::int64_t(terms.count)) * terms.sizes;
}

// Calls body(first, count) for every row of the last axis.
template <class Body>
void for_each_row(const Tensor& x, const Body& body) {
  const auto width = std::size_t(x.shape().back());
  for (std::size_t first = 0; first < std::size_t(x.elements()); first += width) {
    body(first, width);
  }
}

void softmax(const ComparedNode& n, Bounds& bounds) {
  for_each_row(n.input(0), [&](std::size_t first, std::size_t width) {
    const LogitRow row(n.in(0).subspan(first, width), n.kernels);
    for (std::size_t i = 0; i < width; ++i) {
      bounds[0].as<double>()[first + i] = row.p(i) * row.of_p(i) + kTiny;
    }
  });
}

void log_softmax(const ComparedNode& n, Bounds& bounds) {
  for_each_row(n.input(0), [&](std::size_t first, std::size_t width) {
    const LogitRow row(n.in(0).subspan(first, width), n.kernels);
    for (std::size_t i = 0; i < width; ++i) {
      const double distance = row.max - row.x[i];
      bounds[0].as<double>()[first + i] =
          row.of_lse() + kEps * (2 * distance + 2 * std::abs(n.out(0)[first + i]));
    }
  });
}

// dx = y (dy - dot), dot = sum dy y
void softmax_backward(const ComparedNode& n, Bounds& bounds) {
  const auto dy = n.in(SoftmaxBackwardInput::kDy), y = n.in(SoftmaxBackwardInput::kY);
  for_each_row(n.input(0), [&](std::size_t first, std::size_t width) {
    SumTerms dot;
    for (std::size_t i = first; i < first + width; ++i) dot.add(dy[i] * y[i]);
    const double of_dot = of_sum(dot, n.kernels);
    const double roundings = (n.is_external() ? 4 : 3) * kEps;
    for (std::size_t i = first; i < first + width; ++i) {
      bounds[0].as<double>()[i] =
          std::abs(y[i]) * (of_dot + roundings * (std::abs(dy[i]) + std::abs(dot.total))) + kTiny;
    }
  });
}

// dx = dy - exp(y) total, total = sum dy
void log_softmax_backward(const ComparedNode& n, Bounds& bounds) {
  const auto dy = n.in(SoftmaxBackwardInput::kDy), y = n.in(SoftmaxBackwardInput::kY);
  for_each_row(n.input(0), [&](std::size_t first, std::size_t width) {
    SumTerms total;
    for (std::size_t i = first; i < first + width; ++i) total.add(dy[i]);
    const double of_total = of_sum(total, n.kernels);
    for (std::size_t i = first; i < first + width; ++i) {
      const double product = std::exp(y[i]) * std::abs(total.total);
      const double of_exp = n.is_external() ? 6 + 2.4 * std::abs(y[i]) : kExpError + 2;
      bounds[0].as<double>()[i] =
          std::exp(y[i]) * of_total + of_exp * kEps * product + 2 * kEps * std::abs(dy[i]) + kTiny;
    }
  });
}

// Losses that are each off by an error, as the terms of a sum.
struct LossSum {
  double error = 0;
  SumTerms losses;

  void add(double loss, double of_loss) {
    error += of_loss;
    losses.add(loss);
  }
  double of(Kernels kernels) const { return error + of_sum(losses, kernels); }
};

void cross_entropy(const ComparedNode& n, Bounds& bounds) {
  using Out = CrossEntropyOutput;
  const auto& attrs = n.attrs<CrossEntropyAttrs>();
  const auto labels = n.input(CrossEntropyInput::kLabels).as<std::int32_t>();
  LossSum total;
  for_each_row(n.input(CrossEntropyInput::kLogits), [&](std::size_t first, std::size_t width) {
    const LogitRow row(n.in(CrossEntropyInput::kLogits).subspan(first, width), n.kernels);
    const std::size_t r = first / width;
    bounds[Out::kLogSumExp].as<double>()[r] = row.of_lse() + kTiny;
    if (labels[r] == attrs.ignore_index) return;
    double largest = 0;
    for (double x : row.x) largest = std::max(largest, std::abs(row.lse() - x));
    const bool is_label = labels[r] >= 0 && std::size_t(labels[r]) < width;
    const double of_label = is_label ? row.lse() - row.x[std::size_t(labels[r])] : largest;
    const double loss = attrs.label_smoothing > 0 ? largest : of_label;
    total.add(loss, row.of_lse() + 4 * kEps * loss +
                        attrs.label_smoothing * sum_error(std::int64_t(width)) * largest);
  });
  const double count = std::max(n.outputs[Out::kCount].at(0), 1.0);
  bounds[Out::kSum].as<double>()[0] = total.of(n.kernels) + kTiny;
  bounds[Out::kMean].as<double>()[0] =
      total.of(n.kernels) / count + 2 * kEps * std::abs(n.out(Out::kMean)[0]) + kTiny;
}

// dmean / count + dsum
Err loss_gradient(const ComparedNode& n, int dmean, int dsum, double count) {
  const auto given = [&](int place) { return Err(n.scalar(place), n.input_error(place, 0)); };
  const Err mean = n.has(dmean) && count > 0 ? given(dmean) / Err(count) : Err(0);
  return n.has(dsum) ? mean + given(dsum) : mean;
}

// exp(x - lse), relative: the difference and the exponential; the saved lse may be off itself.
double of_probability(const ComparedNode& n, double distance, double lse, double of_saved) {
  if (!n.is_external()) return kEps * (2 * std::abs(distance) + kExpError + 1);
  return kEps * (2.4 * std::abs(distance) + std::abs(lse) + 6) + of_saved;
}

// The error of a factor times a difference, which may be flushed to zero before it is multiplied.
double gradient_error(const Err& factor, const Err& difference) {
  return (factor * difference).rounded().error + std::abs(factor.value) * kTiny;
}

// p - s / K - (1 - s) onehot, p = exp(x - lse): the difference and the exponential, then three
// roundings of numbers that are at most 1, and the factor.
void cross_entropy_backward(const ComparedNode& n, Bounds& bounds) {
  using In = CrossEntropyInput;
  const auto& attrs = n.attrs<CrossEntropyAttrs>();
  const auto labels = n.input(In::kLabels).as<std::int32_t>();
  const auto x = n.in(In::kLogits), saved = n.in(In::kLogSumExp);
  const Err factor = loss_gradient(n, In::kDmean, In::kDsum, n.scalar(In::kCount));
  for_each_row(n.input(In::kLogits), [&](std::size_t first, std::size_t width) {
    const std::size_t r = first / width;
    if (labels[r] == attrs.ignore_index) return;
    const double smoothed = attrs.label_smoothing / double(width);
    for (std::size_t i = first; i < first + width; ++i) {
      const double p = std::exp(x[i] - saved[r]);
      const bool is_label = std::int64_t(i - first) == labels[r];
      const double hot = is_label ? 1 - attrs.label_smoothing : 0;
      const double of_p =
          p * of_probability(n, x[i] - saved[r], saved[r], n.input_error(In::kLogSumExp, r));
      const Err difference(p - smoothed - hot, of_p + 3 * kEps * (p + smoothed + hot));
      bounds[0].as<double>()[i] = gradient_error(factor, difference);
    }
  });
}

double softplus(double x) { return evaluate(EwCode::kSoftplus, {x}, {}); }

void bce(const ComparedNode& n, Bounds& bounds) {
  const auto x = n.in(BceInput::kLogits), t = n.in(BceInput::kTargets);
  LossSum total;
  for (std::size_t e = 0; e < x.size(); ++e) {
    const double positive = std::max(x[e], 0.0), product = std::abs(x[e] * t[e]);
    const double of_softplus = n.is_external() ? 6 + 2.4 * std::abs(x[e]) : 5;
    total.add(softplus(x[e]) + product,
              kEps * (of_softplus * softplus(x[e]) + 2 * positive + 3 * product));
  }
  bounds[BceOutput::kSum].as<double>()[0] = total.of(n.kernels) + kTiny;
  bounds[BceOutput::kMean].as<double>()[0] =
      total.of(n.kernels) / double(std::max<std::size_t>(x.size(), 1)) +
      2 * kEps * std::abs(n.out(BceOutput::kMean)[0]) + kTiny;
}

void bce_backward(const ComparedNode& n, Bounds& bounds) {
  const auto x = n.in(BceInput::kLogits), t = n.in(BceInput::kTargets);
  const Err factor = loss_gradient(n, BceInput::kDmean, BceInput::kDsum, double(x.size()));
  for (std::size_t e = 0; e < x.size(); ++e) {
    const double p = evaluate(EwCode::kSigmoid, {x[e]}, {});
    const double of_p = n.is_external() ? 8 + 2.4 * std::max(-x[e], 0.0) : 5;
    const Err difference(p - t[e], kEps * (of_p * p + std::abs(p - t[e])));
    bounds[0].as<double>()[e] = gradient_error(factor, difference);
  }
}

}  // namespace

void add_loss_rules(BoundRules& rules) {
  rules["softmax"] = softmax;
  rules["softmax_backward"] = softmax_backward;
  rules["log_softmax"] = log_softmax;
  rules["log_softmax_backward"] = log_softmax_backward;
  rules["cross_entropy"] = cross_entropy;
  rules["cross_entropy_backward"] = cross_entropy_backward;
  rules["bce_with_logits"] = bce;
  rules["bce_with_logits_backward"] = bce_backward;
}

}  // namespace keel::compare
