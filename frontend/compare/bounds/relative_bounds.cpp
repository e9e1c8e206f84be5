// Bounds of relative attention and of its backward, head by head and query by query. The formulas
// are those of attention (docs/numerics.md), with scores of two dot products. Beside factors of
// bf16 probabilities, their gradients and dy are rounded to bf16.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/compare/bounds/feature_sums.h"
#include "src/ops/relative_attention.h"

namespace keel::compare {
namespace {

using RelativeIn = RelativeAttentionInput;

constexpr double kSmallestKeyTile = 8;  // keys that a kernel takes at a time

// A sum in one chain, or in two that are added.
Err chained(const SumTerms& all, const SumTerms& a, const SumTerms& b) {
  const double apart = any_sum_error(a).largest + any_sum_error(b).largest;
  return {all.total, std::max(apart, any_sum_error(all).largest)};
}

// One head of one row of the batch; queries are taken one after the other.
class RelativeHeadBounds {
 public:
  RelativeHeadBounds(const ComparedNode& n, NodeBounds& bounds, std::int64_t row, std::int64_t head)
      : n_(n),
        bounds_(bounds),
        attrs_(n.attrs<RelativeAttentionAttrs>()),
        sizes_(relative_sizes(n.input(RelativeIn::kQk).shape(), n.input(RelativeIn::kK).shape(),
                              n.input(RelativeIn::kP).shape(), attrs_.heads)),
        row_(row),
        head_(head),
        scale_(relative_scale(attrs_, sizes_.width)),
        is_narrow_(n.graph.type(n.node().inputs[RelativeIn::kQk]).dtype == DType::kBF16),
        scores_(std::size_t(sizes_.keys)) {}

  void forward() {
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      const QuerySums sums = sums_of(i);
      FeatureSums y(sizes_.width, is_narrow_);
      for (std::int64_t j = first(i); j <= last(i); ++j) {
        const Err p = exp_of(j, sums);
        y.add(p.value, p.error + p.value * (sums.relative + 6 * kEps), in(RelativeIn::kV, j));
      }
      y.write(1, at(RelativeAttentionOutput::kY, sizes_.queries, i));
      bounds_[RelativeAttentionOutput::kLse].as<double>()[lse_place(i)] =
          kSecondOrder * sums.of_lse + kTiny;
    }
  }

  // The sums of dp go on from row to row.
  void backward(std::vector<FeatureSums>& dp) {
    using Out = RelativeAttentionGradient;
    std::vector<FeatureSums> dk(std::size_t(sizes_.keys), FeatureSums(sizes_.width, is_narrow_)),
        dv = dk;
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      backward_of(i, {dk, dv, dp});
    }
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      dk[std::size_t(j)].write(std::abs(scale_), at(Out::kDk, sizes_.keys, j));
      dv[std::size_t(j)].write(1, at(Out::kDv, sizes_.keys, j));
    }
  }

 private:
  // A summary of a query's scores: the largest, the log of the sum of their exponentials, and the
  // relative error of that sum.
  struct QuerySums {
    double high = 0, lse = 0, relative = 0, of_lse = 0;
  };
  struct SharedSums {
    std::vector<FeatureSums>&dk, &dv, &dp;
  };

  // The relative error of exp(score - max) at a distance below the maximum, as in attention.
  double of_exp(std::int64_t j, double distance) const {
    const double tiles = double(sizes_.keys) / kSmallestKeyTile;
    return score(j).error + kEps * (2.4 * distance + 8 + 8 * std::sqrt(tiles));
  }
  // exp(score - lse), in which the sum of exponentials is not off. A factor of bf16 is that times a
  // sum between 1 and 2.
  Err exp_of(std::int64_t j, const QuerySums& sums) const {
    const double log2 = std::numbers::ln2;
    const double shift = is_narrow_ ? log2 * std::ceil(sums.lse / log2) : sums.lse;
    const double p = std::exp(score(j).value - shift), to_lse = std::exp(shift - sums.lse);
    const double distance = (is_narrow_ ? log2 : 0) + sums.high - score(j).value;
    const Err factor = narrow({p, p * of_exp(j, distance)});
    return {to_lse * factor.value, to_lse * factor.error};
  }
  Err narrow(const Err& factor) const { return is_narrow_ ? in_bf16(factor) : factor; }
  const Err& score(std::int64_t j) const { return scores_[std::size_t(j)]; }
  std::size_t lse_place(std::int64_t i) const {
    return std::size_t((row_ * sizes_.heads + head_) * sizes_.queries + i);
  }
  std::int64_t place(std::int64_t length, std::int64_t i) const {
    return (row_ * length + i) * sizes_.features() + head_ * sizes_.width;
  }
  // The head's features of query or key i, or of distance i.
  const double* in(int input, std::int64_t i) const {
    const bool is_shared = input == RelativeIn::kP;
    const std::int64_t length = n_.input(input).shape()[is_shared ? 0 : 1];
    return n_.in(input).data() +
           (is_shared ? i * sizes_.features() + head_ * sizes_.width : place(length, i));
  }
  double* at(std::size_t output, std::int64_t length, std::int64_t i) const {
    return bounds_[output].as<double>().data() + place(length, i);
  }
  std::int64_t first(std::int64_t i) const {
    const std::int64_t filled =
        n_.has(RelativeIn::kFilled)
            ? n_.input(RelativeIn::kFilled).as<std::int32_t>()[std::size_t(row_)]
            : sizes_.memory();
    return first_key_seen(sizes_, attrs_.window, filled, i);
  }
  std::int64_t last(std::int64_t i) const { return i + sizes_.memory(); }
  std::int64_t distance(std::int64_t i, std::int64_t j) const {
    return std::min(i + sizes_.memory() - j, sizes_.distances - 1);
  }

  // The scores of query i and their errors.
  void take_query(std::int64_t i) {
    for (std::int64_t j = first(i); j <= last(i); ++j) {
      SumTerms all, content, distances;
      const double *qk = in(RelativeIn::kQk, i), *qp = in(RelativeIn::kQp, i),
                   *k = in(RelativeIn::kK, j), *p = in(RelativeIn::kP, distance(i, j));
      for (std::int64_t c = 0; c < sizes_.width; ++c) content.add(qk[c] * k[c]);
      for (std::int64_t c = 0; c < sizes_.width; ++c) distances.add(qp[c] * p[c]);
      for (std::int64_t c = 0; c < sizes_.width; ++c) all.add(qk[c] * k[c]);
      for (std::int64_t c = 0; c < sizes_.width; ++c) all.add(qp[c] * p[c]);
      Err sum = chained(all, content, distances);
      if (is_narrow_) sum.error += flushed(qk, k) + flushed(qp, p);
      const double sizes = std::abs(content.total) + std::abs(distances.total);
      scores_[std::size_t(j)] = {scale_ * sum.value,
                                 std::abs(scale_) * (sum.error + 4 * kEps * sizes)};
    }
  }
  // The sum of the values that bf16 instructions treat as 0.
  double flushed(const double* a, const double* b) const {
    double sum = 0;
    for (std::int64_t c = 0; c < sizes_.width; ++c) {
      const bool is_tiny = std::abs(a[c]) < kTiny || std::abs(b[c]) < kTiny;
      if (is_tiny) sum += std::abs(a[c] * b[c]);
    }
    return sum;
  }
  Err dot(const double* a, const double* b) const {
    SumTerms terms;
    for (std::int64_t c = 0; c < sizes_.width; ++c) terms.add(a[c] * b[c]);
    return {terms.total, any_sum_error(terms).largest + (is_narrow_ ? flushed(a, b) : 0)};
  }

  QuerySums sums_of(std::int64_t i) const {
    QuerySums sums;
    sums.high = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = first(i); j <= last(i); ++j) {
      sums.high = std::max(sums.high, score(j).value);
    }
    SumTerms exps;
    for (std::int64_t j = first(i); j <= last(i); ++j) {
      exps.add(std::exp(score(j).value - sums.high));
    }
    sums.lse = sums.high + std::log(exps.total);
    for (std::int64_t j = first(i); j <= last(i); ++j) {
      const double s = score(j).value;
      sums.relative += std::exp(s - sums.lse) * of_exp(j, sums.high - s);
    }
    sums.relative += any_relative_error(exps);
    sums.of_lse =
        sums.relative + kEps * (4 + 3 * std::abs(sums.lse) + 3 * std::log(exps.count + 1));
    return sums;
  }

  // With lse, y and dy given: P = exp(s - lse), dS = P (dP - delta).
  void backward_of(std::int64_t i, const SharedSums& sums) {
    const double lse = n_.in(RelativeIn::kLse)[lse_place(i)];
    const double of_lse = n_.input_error(RelativeIn::kLse, lse_place(i));
    const double* const exact = in(RelativeIn::kDy, i);
    std::vector<double> factors(exact, exact + sizes_.width);
    if (is_narrow_) std::ranges::transform(factors, factors.begin(), rounded_to_bf16);
    const double* const dy = factors.data();
    const Err delta = dot(dy, in(RelativeIn::kY, i));
    FeatureSums dqk(sizes_.width, is_narrow_), dqp(sizes_.width, is_narrow_);
    for (std::int64_t j = first(i); j <= last(i); ++j) {
      const double s = score(j).value, p = std::exp(s - lse);
      const double of_p =
          score(j).error + of_lse + kEps * (2.4 * std::abs(s - lse) + 8 + std::abs(lse));
      const Err dp = dot(dy, in(RelativeIn::kV, j));
      const double off = p * ((of_p + 3 * kEps) * (std::abs(dp.value) + std::abs(delta.value)) +
                              dp.error + delta.error) +
                         kTiny;
      const Err factor = narrow({p * (dp.value - delta.value), off}), kept = narrow({p, p * of_p});
      const double ds = factor.value, of_ds = factor.error;
      const std::int64_t r = distance(i, j);
      dqk.add(ds, of_ds, in(RelativeIn::kK, j));
      dqp.add(ds, of_ds, in(RelativeIn::kP, r));
      sums.dk[std::size_t(j)].add(ds, of_ds, in(RelativeIn::kQk, i));
      sums.dp[std::size_t(r)].add(ds, of_ds, in(RelativeIn::kQp, i));
      sums.dv[std::size_t(j)].add(kept.value, kept.error + 2 * kEps * p + kTiny, dy);
    }
    using Out = RelativeAttentionGradient;
    dqk.write(std::abs(scale_), at(Out::kDqk, sizes_.queries, i));
    dqp.write(std::abs(scale_), at(Out::kDqp, sizes_.queries, i));
  }

  const ComparedNode& n_;
  NodeBounds& bounds_;
  const RelativeAttentionAttrs& attrs_;
  RelativeSizes sizes_;
  std::int64_t row_, head_;
  double scale_;
  bool is_narrow_;
  std::vector<Err> scores_;
};

RelativeSizes relative_sizes_of(const ComparedNode& n) {
  return relative_sizes(n.input(RelativeIn::kQk).shape(), n.input(RelativeIn::kK).shape(),
                        n.input(RelativeIn::kP).shape(), n.attrs<RelativeAttentionAttrs>().heads);
}

void relative_attention(const ComparedNode& n, NodeBounds& bounds) {
  const RelativeSizes sizes = relative_sizes_of(n);
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      RelativeHeadBounds(n, bounds, row, head).forward();
    }
  }
}

void relative_attention_backward(const ComparedNode& n, NodeBounds& bounds) {
  const RelativeSizes sizes = relative_sizes_of(n);
  const double scale = relative_scale(n.attrs<RelativeAttentionAttrs>(), sizes.width);
  const bool is_narrow = n.graph.type(n.node().inputs[RelativeIn::kQk]).dtype == DType::kBF16;
  double* const dp = bounds[RelativeAttentionGradient::kDp].as<double>().data();
  for (std::int64_t head = 0; head < sizes.heads; ++head) {
    std::vector<FeatureSums> sums(std::size_t(sizes.distances),
                                  FeatureSums(sizes.width, is_narrow));
    for (std::int64_t row = 0; row < sizes.batch; ++row) {
      RelativeHeadBounds(n, bounds, row, head).backward(sums);
    }
    for (std::int64_t r = 0; r < sizes.distances; ++r) {
      sums[std::size_t(r)].write(std::abs(scale), dp + r * sizes.features() + head * sizes.width);
    }
  }
}

}  // namespace

void add_relative_rules(BoundRules& rules) {
  rules["relative_attention"] = relative_attention;
  rules["relative_attention_backward"] = relative_attention_backward;
}

}  // namespace keel::compare
