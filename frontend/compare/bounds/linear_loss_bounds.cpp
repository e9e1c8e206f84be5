// Bounds of linear_cross_entropy and of its backward: those of a product, then those of a loss on
// logits that are off by as much (docs/numerics.md). With factors of bf16, P as a factor is the
// rounded one of the reference, and is off where its error decides how it is rounded.
#include <algorithm>
#include <limits>

#include "frontend/compare/bounds/product_sum.h"
#include "src/ops/linear_cross_entropy.h"

namespace keel::compare {
namespace linear_loss {
namespace {

using In = LinearLossInput;
using Out = LinearLossOutput;
using Gradient = LinearLossGradient;

constexpr double kExpError = 3.4;  // of exp, in units of eps

struct Operands {
  const ComparedNode& n;
  const LinearLossAttrs& attrs;
  std::int64_t rows, width, vocabulary;
  std::vector<LossPart> parts;
  bool is_narrow;

  explicit Operands(const ComparedNode& node)
      : n(node),
        attrs(node.attrs<LinearLossAttrs>()),
        rows(node.input(In::kX).shape()[0]),
        width(node.input(In::kX).shape()[1]),
        vocabulary(node.input(In::kTable).shape()[0]),
        parts(loss_parts(attrs, vocabulary)),
        is_narrow(node.graph.type(node.node().inputs[In::kX]).dtype == DType::kBF16) {}

  std::int64_t label(std::int64_t row) const {
    return n.input(In::kLabels).as<std::int32_t>()[std::size_t(row)];
  }
  std::int64_t hot(const LossPart& part, std::int64_t row) const {
    return class_of(attrs, part, label(row), vocabulary);
  }
  // Where the weights of a class lie: the input, and the number of the row there.
  std::pair<int, std::size_t> place(const LossPart& part, std::int64_t c) const {
    if (c < part.words()) return {In::kTable, std::size_t(part.first + c)};
    return {In::kClusters, std::size_t(c - part.words())};
  }
  Err factor(double value) const { return is_narrow ? narrow_factor(value) : Err(value); }
  Err weight(const LossPart& part, std::int64_t c, std::int64_t f) const {
    const auto [input, row] = place(part, c);
    return factor(n.in(input)[row * std::size_t(width) + std::size_t(f)]);
  }
  Err x(std::int64_t row, std::int64_t f) const {
    return factor(n.in(In::kX)[std::size_t(row * width + f)]);
  }
  // The logits of a row in a part.
  std::vector<Err> logits(const LossPart& part, std::int64_t row) const {
    std::vector<Err> z;
    for (std::int64_t c = 0; c < part.classes(); ++c) {
      ProductSum product;
      for (std::int64_t f = 0; f < width; ++f) product.add(x(row, f), weight(part, c, f));
      const auto [input, at] = place(part, c);
      const int bias = input == In::kTable ? In::kBias : In::kClusterBias;
      z.push_back(n.has(bias) ? product.result() + Err(n.in(bias)[at]) : product.result());
    }
    return z;
  }
};

// A class that a bias of -infinity excludes has a probability of exactly 0.
bool is_excluded(const Err& z) { return z.value == -std::numeric_limits<double>::infinity(); }

// log sum exp(z) in double, as the losses take it: the argument of every exponential is off by its
// logit's error and by the rounding of the distance to the maximum, so the exponential is off by
// expm1 of that; sums and the logarithm are in double.
Err log_sum_exp_of(const std::vector<Err>& z) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0, off = 0;
  for (const Err& v : z) max = std::max(max, v.value);
  for (const Err& v : z) {
    if (is_excluded(v)) continue;
    const double p = std::exp(v.value - max);
    sum += p;
    off += p * std::expm1(v.error + kEps * (max - v.value + kExpError + 2));
  }
  return {max + std::log(sum), off / sum + kTiny};
}

double mean_error(const std::vector<Err>& z) {
  double sum = 0;
  for (const Err& v : z) sum += v.error;
  return sum / double(z.size());
}

void forward(const ComparedNode& n, NodeBounds& bounds) {
  const Operands o(n);
  const double s = o.attrs.label_smoothing;
  double of_sum = 0, of_nll = 0;
  for (std::size_t p = 0; p < o.parts.size(); ++p) {
    for (std::int64_t row = 0; row < o.rows; ++row) {
      if (!o.parts[p].takes(o.label(row))) continue;
      const std::vector<Err> z = o.logits(o.parts[p], row);
      const Err lse = log_sum_exp_of(z);
      bounds[Out::kLse].as<double>()[p * std::size_t(o.rows) + std::size_t(row)] =
          lse.rounded().error;
      const std::int64_t hot = o.hot(o.parts[p], row);
      const double of_hot = hot < 0 ? 0 : z[std::size_t(hot)].error;
      of_nll += lse.error + of_hot;
      of_sum += lse.error + (1 - s) * of_hot + (s > 0 ? s * mean_error(z) : 0);
    }
  }
  bounds[Out::kSum].as<double>()[0] = of_sum + 2 * kEps * std::abs(n.out(Out::kSum)[0]) + kTiny;
  bounds[Out::kNll].as<double>()[0] = of_nll + 2 * kEps * std::abs(n.out(Out::kNll)[0]) + kTiny;
}

// P of a class: dsum (exp(z - lse) - share - hot), where exp's result is off by its argument's
// error, and the three numbers are rounded.
Err gradient_of(const Err& dsum, const Err& z, const Err& lse, double subtracted) {
  if (is_excluded(z)) return dsum * Err(-subtracted, 3 * kEps * subtracted + kTiny);
  const double distance = z.value - lse.value, p = std::exp(distance);
  const double of_p = z.error + lse.error + kEps * (2 * std::abs(distance) + kExpError + 1);
  return dsum * Err(p - subtracted, p * std::expm1(of_p) + 3 * kEps * (p + subtracted) + kTiny);
}

struct GradientSums {
  const Operands& o;
  std::vector<ProductSum> dx, dtable, dbias, dclusters, dcluster_bias;

  explicit GradientSums(const Operands& of)
      : o(of),
        dx(std::size_t(of.rows * of.width)),
        dtable(std::size_t(of.vocabulary * of.width)),
        dbias(std::size_t(of.vocabulary)),
        dclusters(of.attrs.cutoffs.size() * std::size_t(of.width)),
        dcluster_bias(of.attrs.cutoffs.size()) {}

  void take(const LossPart& part, std::int64_t row, std::int64_t c, const Err& p) {
    const auto [input, at] = o.place(part, c);
    auto& rows = input == In::kTable ? dtable : dclusters;
    auto& bias = input == In::kTable ? dbias : dcluster_bias;
    bias[at].add(p, 1.0);
    const Err factor = o.is_narrow ? in_bf16(p) : p;
    for (std::int64_t f = 0; f < o.width; ++f) {
      dx[std::size_t(row * o.width + f)].add(factor, o.weight(part, c, f));
      rows[at * std::size_t(o.width) + std::size_t(f)].add(factor, o.x(row, f));
    }
  }
  // lse_of(p, row, z): of a row whose logits are z.
  template <class LseOf>
  void take_row(std::size_t p, std::int64_t row, const Err& dsum, const LseOf& lse_of) {
    const LossPart& part = o.parts[p];
    const double s = o.attrs.label_smoothing;
    const std::vector<Err> z = o.logits(part, row);
    const Err lse = lse_of(p, row, z);
    const std::int64_t hot = o.hot(part, row);
    for (std::int64_t c = 0; c < part.classes(); ++c) {
      const double subtracted = s / double(part.classes()) + (c == hot ? 1 - s : 0);
      take(part, row, c, gradient_of(dsum, z[std::size_t(c)], lse, subtracted));
    }
  }
};

// The errors of sums in double, rounded once.
void write_in_double(const std::vector<ProductSum>& sums, Tensor& bound) {
  for (std::size_t e = 0; e < sums.size(); ++e) {
    const ProductSum& sum = sums[e];
    bound.as<double>()[e] = Err(sum.terms.total, sum.of_factors).rounded().error;
  }
}

// The bounds of the gradients, the first of which is output `first`.
template <class LseOf>
void gradients(const ComparedNode& n, const Err& dsum, const LseOf& lse_of, NodeBounds& bounds,
               std::size_t first) {
  const Operands o(n);
  GradientSums sums(o);
  for (std::size_t p = 0; p < o.parts.size(); ++p) {
    for (std::int64_t row = 0; row < o.rows; ++row) {
      if (o.parts[p].takes(o.label(row))) sums.take_row(p, row, dsum, lse_of);
    }
  }
  const auto bound = [&](Gradient::Place place) -> Tensor& { return bounds[first + place]; };
  write(sums.dx, bound(Gradient::kDx));
  write(sums.dtable, bound(Gradient::kDtable));
  if (n.has(In::kBias)) write_in_double(sums.dbias, bound(Gradient::kDbias));
  if (n.has(In::kClusters)) write(sums.dclusters, bound(Gradient::kDclusters));
  if (n.has(In::kClusterBias)) write_in_double(sums.dcluster_bias, bound(Gradient::kDclusterBias));
}

void backward(const ComparedNode& n, NodeBounds& bounds) {
  const std::size_t rows = std::size_t(n.input(In::kX).shape()[0]);
  const auto lse_of = [&](std::size_t p, std::int64_t row, const std::vector<Err>&) {
    return Err(n.in(In::kLse)[p * rows + std::size_t(row)]);
  };
  gradients(n, n.scalar(In::kDsum), lse_of, bounds, 0);
}

// Here lse is computed, too, and is off itself.
void step(const ComparedNode& n, NodeBounds& bounds) {
  forward(n, bounds);
  const auto lse_of = [](std::size_t, std::int64_t, const std::vector<Err>& z) {
    return log_sum_exp_of(z).rounded();
  };
  gradients(n, n.scalar(LinearLossStep::kDsumInput), lse_of, bounds,
            LinearLossStep::kFirstGradient);
}

}  // namespace
}  // namespace linear_loss

void add_linear_loss_rules(BoundRules& rules) {
  rules["linear_cross_entropy"] = linear_loss::forward;
  rules["linear_cross_entropy_backward"] = linear_loss::backward;
  rules["linear_cross_entropy_step"] = linear_loss::step;
}

}  // namespace keel::compare
