// Bounds of attention and of its backward, head by head and query by query. The formulas are those
// of docs/numerics.md. Beside q, k and v of bf16, probabilities, their gradients and dy are rounded
// to bf16 as factors, and are off where their error decides how they are rounded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/compare/bounds/feature_sums.h"
#include "src/ops/attention.h"

namespace keel::compare {
namespace {

using In = AttentionInput;

constexpr double kLog2 = std::numbers::ln2;
constexpr double kSmallestTile = 16;  // keys that a kernel takes at a time

// One head of one row of the batch; queries are taken one after the other.
class HeadBounds {
 public:
  HeadBounds(const ComparedNode& n, NodeBounds& bounds, std::int64_t row, std::int64_t head)
      : n_(n),
        bounds_(bounds),
        attrs_(n.attrs<AttentionAttrs>()),
        sizes_(attention_sizes(n.input(In::kQ).shape(), n.input(In::kK).shape(), attrs_.heads)),
        row_(row),
        head_(head),
        scale_(attention_scale(attrs_, sizes_)),
        is_narrow_(n.graph.type(n.node().inputs[In::kQ]).dtype == DType::kBF16),
        score_(std::size_t(sizes_.keys)),
        of_score_(score_) {}

  void forward() {
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      const QuerySums sums = sums_of(i);
      FeatureSums y(sizes_.width, is_narrow_);
      for (std::int64_t j = 0; j < sizes_.keys; ++j) {
        if (!sees(i, j)) continue;
        const Err p = kept_exp(i, j, sums);
        y.add(p.value, p.error + p.value * (sums.relative + 6 * kEps), in(In::kV, sizes_.keys, j));
      }
      y.write(1, at(bounds_[AttentionOutput::kY], sizes_.queries, i));
      bounds_[AttentionOutput::kLse].as<double>()[std::size_t(lse_place(i))] =
          kSecondOrder * sums.of_lse + kTiny;
    }
  }

  void backward() {
    std::vector<FeatureSums> dk(std::size_t(sizes_.keys), FeatureSums(sizes_.width, is_narrow_)),
        dv = dk;
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      backward_of(i, dk, dv);
    }
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      dk[std::size_t(j)].write(std::abs(scale_),
                               at(bounds_[AttentionGradient::kDk], sizes_.keys, j));
      dv[std::size_t(j)].write(1, at(bounds_[AttentionGradient::kDv], sizes_.keys, j));
    }
  }

 private:
  // A summary of a query's scores: the largest, the log of the sum of their exponentials, and the
  // relative error of that sum.
  struct QuerySums {
    double high = 0, lse = 0, relative = 0, of_lse = 0;
  };

  // The relative error of exp(score - max) at a distance below the maximum. The terms before a
  // larger maximum are scaled down tile by tile; the distances of these steps add up to that one.
  double of_exp(std::int64_t j, double distance) const {
    return of_score(j) + kEps * (2.4 * distance + 8 + 8 * std::sqrt(keys() / kSmallestTile));
  }
  // keep exp(score - lse), in which the sum of exponentials is not off. A factor of bf16 is that
  // times a sum between 1 and 2.
  Err kept_exp(std::int64_t i, std::int64_t j, const QuerySums& sums) const {
    const double shift = is_narrow_ ? kLog2 * std::ceil(sums.lse / kLog2) : sums.lse;
    const double p = std::exp(score(j) - shift);
    const double distance = (is_narrow_ ? kLog2 : 0) + sums.high - score(j);
    const Err factor = narrow({p, p * of_exp(j, distance)});
    const double to_lse = keep(i, j) * std::exp(shift - sums.lse);
    return {to_lse * factor.value, to_lse * factor.error};
  }
  Err narrow(const Err& factor) const { return is_narrow_ ? in_bf16(factor) : factor; }
  double keys() const { return double(sizes_.keys); }
  double score(std::int64_t j) const { return score_[std::size_t(j)]; }
  double of_score(std::int64_t j) const { return of_score_[std::size_t(j)]; }
  std::int64_t lse_place(std::int64_t i) const {
    return (row_ * sizes_.heads + head_) * sizes_.queries + i;
  }
  std::int64_t place(std::int64_t length, std::int64_t i) const {
    return (row_ * length + i) * sizes_.features() + head_ * sizes_.width;
  }
  // The head's features of query or key i.
  const double* in(int input, std::int64_t length, std::int64_t i) const {
    return n_.in(input).data() + place(length, i);
  }
  double* at(Tensor& t, std::int64_t length, std::int64_t i) const {
    return t.as<double>().data() + place(length, i);
  }
  bool sees(std::int64_t i, std::int64_t j) const {
    if (attrs_.causal && j > i + sizes_.diagonal()) return false;
    return !n_.has(In::kKeyMask) ||
           n_.input(In::kKeyMask).as<std::uint8_t>()[std::size_t(row_ * sizes_.keys + j)] != 0;
  }
  double keep(std::int64_t i, std::int64_t j) const {
    if (attrs_.p == 0) return 1;
    const Philox random(static_cast<std::uint64_t>(attrs_.seed),
                        static_cast<std::uint32_t>(attrs_.stream),
                        static_cast<std::uint32_t>(n_.number(In::kStep)));
    const std::uint32_t bits =
        attention_bits(random, static_cast<std::uint32_t>(n_.number(In::kFirstRow) + row_),
                       static_cast<std::uint64_t>(head_), static_cast<std::uint64_t>(i),
                       static_cast<std::uint64_t>(j));
    return (bits >> 8) * 0x1p-24 >= attrs_.p ? 1 / (1 - attrs_.p) : 0;
  }

  // The scores of query i and their errors.
  void take_query(std::int64_t i) {
    const double* q = in(In::kQ, sizes_.queries, i);
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      const Err s = dot(q, in(In::kK, sizes_.keys, j));
      score_[std::size_t(j)] = scale_ * s.value;
      of_score_[std::size_t(j)] =
          std::abs(scale_) * s.error + 4 * kEps * std::abs(scale_ * s.value);
    }
  }
  Err dot(const double* a, const double* b) const {
    SumTerms terms;
    double flushed = 0;  // what instructions for bf16 may take as 0
    for (std::int64_t c = 0; c < sizes_.width; ++c) {
      terms.add(a[c] * b[c]);
      const bool is_tiny = std::abs(a[c]) < kTiny || std::abs(b[c]) < kTiny;
      if (is_narrow_ && is_tiny) flushed += std::abs(a[c] * b[c]);
    }
    return {terms.total, any_sum_error(terms).largest + flushed};
  }
  // dy of query i as a factor.
  std::vector<double> gradient(std::int64_t i) const {
    const double* const dy = in(In::kDy, sizes_.queries, i);
    std::vector<double> factors(dy, dy + sizes_.width);
    if (is_narrow_) std::ranges::transform(factors, factors.begin(), rounded_to_bf16);
    return factors;
  }

  QuerySums sums_of(std::int64_t i) const {
    QuerySums sums;
    sums.high = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) sums.high = std::max(sums.high, score(j));
    }
    if (std::isinf(sums.high)) return {};  // it sees nothing
    SumTerms exps;
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) exps.add(std::exp(score(j) - sums.high));
    }
    sums.lse = sums.high + std::log(exps.total);
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (!sees(i, j)) continue;
      sums.relative += std::exp(score(j) - sums.lse) * of_exp(j, sums.high - score(j));
    }
    sums.relative += any_relative_error(exps);
    sums.of_lse =
        sums.relative + kEps * (4 + 3 * std::abs(sums.lse) + 3 * std::log(exps.count + 1));
    return sums;
  }

  // With lse, y and dy given: P = exp(s - lse), dS = P (keep dP - delta). No sum is scaled down.
  void backward_of(std::int64_t i, std::vector<FeatureSums>& dk, std::vector<FeatureSums>& dv) {
    const auto lse_at = std::size_t(lse_place(i));
    const double lse = n_.in(In::kLse)[lse_at], of_lse = n_.input_error(In::kLse, lse_at);
    const double* q = in(In::kQ, sizes_.queries, i);
    const std::vector<double> gradient_of_y = gradient(i);
    const double* dy = gradient_of_y.data();
    const Err delta = dot(dy, in(In::kY, sizes_.queries, i));
    FeatureSums dq(sizes_.width, is_narrow_);
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (!sees(i, j)) continue;
      const double p = std::exp(score(j) - lse), kept = keep(i, j);
      const double of_p =
          of_score(j) + of_lse + kEps * (2.4 * std::abs(score(j) - lse) + 8 + std::abs(lse));
      const Err dp = dot(dy, in(In::kV, sizes_.keys, j));
      const double ds = p * (kept * dp.value - delta.value);
      const double of_ds =
          p * ((of_p + 3 * kEps) * (kept * std::abs(dp.value) + std::abs(delta.value)) +
               kept * dp.error + delta.error) +
          kTiny;
      const Err ds_factor = narrow({ds, of_ds});
      dq.add(ds_factor.value, ds_factor.error, in(In::kK, sizes_.keys, j));
      dk[std::size_t(j)].add(ds_factor.value, ds_factor.error, q);
      const Err p_factor = narrow({p, p * of_p});
      dv[std::size_t(j)].add(kept * p_factor.value, kept * (p_factor.error + 2 * kEps * p) + kTiny,
                             dy);
    }
    dq.write(std::abs(scale_), at(bounds_[AttentionGradient::kDq], sizes_.queries, i));
  }

  const ComparedNode& n_;
  NodeBounds& bounds_;
  const AttentionAttrs& attrs_;
  AttentionSizes sizes_;
  std::int64_t row_, head_;
  double scale_;
  bool is_narrow_;
  std::vector<double> score_, of_score_;
};

void for_each_head(const ComparedNode& n, NodeBounds& bounds, void (HeadBounds::*fill)()) {
  const AttentionSizes sizes = attention_sizes(n.input(In::kQ).shape(), n.input(In::kK).shape(),
                                               n.attrs<AttentionAttrs>().heads);
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      (HeadBounds(n, bounds, row, head).*fill)();
    }
  }
}

void attention(const ComparedNode& n, NodeBounds& bounds) {
  for_each_head(n, bounds, &HeadBounds::forward);
}
void attention_backward(const ComparedNode& n, NodeBounds& bounds) {
  for_each_head(n, bounds, &HeadBounds::backward);
}

}  // namespace

void add_attention_rules(BoundRules& rules) {
  rules["attention"] = attention;
  rules["attention_backward"] = attention_backward;
}

}  // namespace keel::compare
