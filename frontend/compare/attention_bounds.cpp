// Bounds of attention and of its backward, head by head and query by query. The formulas are those
// of docs/numerics.md.
#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/compare/node_bounds.h"
#include "frontend/compare/running_error.h"
#include "src/ops/attention.h"

namespace keel::compare {
namespace {

using In = AttentionInput;

constexpr double kSecondOrder = 1.05;  // products of errors
constexpr double kSmallestTile = 8;    // keys that a backend takes at a time

// One head of one row of the batch; queries are taken one after the other.
class HeadBounds {
 public:
  HeadBounds(const JudgedNode& n, std::vector<Tensor>& bounds, std::int64_t row, std::int64_t head)
      : n_(n),
        bounds_(bounds),
        attrs_(n.attrs<AttentionAttrs>()),
        sizes_(attention_sizes(n.input(In::kQ).shape(), n.input(In::kK).shape(), attrs_.heads)),
        row_(row),
        head_(head),
        scale_(attention_scale(attrs_, sizes_)),
        score_(std::size_t(sizes_.keys)),
        of_score_(score_) {}

  void forward() {
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      const QuerySums sums = sums_of(i);
      double* y = at(bounds_[AttentionOutput::kY], sizes_.queries, i);
      for (std::int64_t c = 0; c < sizes_.width; ++c) y[c] = kTiny;
      for (std::int64_t j = 0; j < sizes_.keys; ++j) {
        if (!sees(i, j)) continue;
        const double p = keep(i, j) * std::exp(score(j) - sums.lse);
        add(y, p * (sums.of_exp(of_score(j)) + sums.mean + (2 * keys() + 8) * kEps), In::kV, j);
      }
      bounds_[AttentionOutput::kLse].as<double>()[std::size_t(lse_place(i))] =
          kSecondOrder * sums.of_lse + kTiny;
    }
  }

  void backward() {
    for (std::int64_t i = 0; i < sizes_.queries; ++i) {
      take_query(i);
      backward_of(i);
    }
  }

 private:
  // What a query's scores come to.
  struct QuerySums {
    double lse = 0, range = 0, tiles = 0, mean = 0, of_lse = 0;
    // Of exp(score - max), relative, for the error of the score.
    double of_exp(double of_score) const { return of_score + kEps * (2 * range + 4 + 6 * tiles); }
  };

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
                        static_cast<std::uint32_t>(n_.number(In::kTick)));
    const std::uint32_t bits =
        attention_bits(random, static_cast<std::uint32_t>(n_.number(In::kFirstRow) + row_),
                       static_cast<std::uint64_t>(head_), static_cast<std::uint64_t>(i),
                       static_cast<std::uint64_t>(j));
    return (bits >> 8) * 0x1p-24 >= attrs_.p ? 1 / (1 - attrs_.p) : 0;
  }

  // The scores of query i, and es_ij = eps (w + 3) |scale| sum |q k|.
  void take_query(std::int64_t i) {
    const double* q = in(In::kQ, sizes_.queries, i);
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      const Err s = dot(q, in(In::kK, sizes_.keys, j));
      score_[std::size_t(j)] = scale_ * s.value;
      of_score_[std::size_t(j)] =
          std::abs(scale_) * s.error + 2 * kEps * std::abs(scale_ * s.value);
    }
  }
  Err dot(const double* a, const double* b) const {
    double sum = 0, size = 0;
    for (std::int64_t c = 0; c < sizes_.width; ++c) {
      sum += a[c] * b[c];
      size += std::abs(a[c] * b[c]);
    }
    return {sum, sum_error(sizes_.width) * size};
  }

  QuerySums sums_of(std::int64_t i) const {
    double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) low = std::min(low, score(j)), high = std::max(high, score(j));
    }
    QuerySums sums;
    if (high < low) return sums;  // it sees nothing
    sums.range = high - low;
    sums.tiles = 1 + keys() / kSmallestTile;
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) sum += std::exp(score(j) - high);
    }
    sums.lse = high + std::log(sum);
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (sees(i, j)) sums.mean += std::exp(score(j) - sums.lse) * sums.of_exp(of_score(j));
    }
    sums.mean += keys() * kEps;
    sums.of_lse = sums.mean + kEps * (keys() + 4 + 3 * std::abs(sums.lse) +
                                      3 * std::log(keys() + 1) + sums.range);
    return sums;
  }

  // to += kSecondOrder * factor * |features of key or query j|
  void add(double* to, double factor, int input, std::int64_t j) const {
    const std::int64_t length = input == In::kQ || input == In::kDy ? sizes_.queries : sizes_.keys;
    const double* x = in(input, length, j);
    for (std::int64_t c = 0; c < sizes_.width; ++c) to[c] += kSecondOrder * factor * std::abs(x[c]);
  }

  // With lse, y and dy given: P = exp(s - lse), dS = P (keep dP - delta).
  void backward_of(std::int64_t i) {
    const double lse = n_.in(In::kLse)[std::size_t(lse_place(i))], scale = std::abs(scale_);
    const double* dy = in(In::kDy, sizes_.queries, i);
    const Err delta = dot(dy, in(In::kY, sizes_.queries, i));
    double* dq = at(bounds_[AttentionGradient::kDq], sizes_.queries, i);
    for (std::int64_t c = 0; c < sizes_.width; ++c) dq[c] += kTiny;
    for (std::int64_t j = 0; j < sizes_.keys; ++j) {
      if (!sees(i, j)) continue;
      const double p = std::exp(score(j) - lse), kept = keep(i, j);
      const double of_p = of_score(j) + kEps * (2 * std::abs(score(j) - lse) + std::abs(lse) + 6);
      const Err dp = dot(dy, in(In::kV, sizes_.keys, j));
      const double ds = std::abs(p * (kept * dp.value - delta.value));
      const double of_ds =
          p * ((of_p + 3 * kEps) * (kept * std::abs(dp.value) + std::abs(delta.value)) +
               kept * dp.error + delta.error) +
          kTiny;
      const double along_keys = of_ds + (keys() + 4) * kEps * ds;
      const double along_queries = of_ds + (double(sizes_.queries) + 4) * kEps * ds;
      add(dq, scale * along_keys, In::kK, j);
      add(at(bounds_[AttentionGradient::kDk], sizes_.keys, j), scale * along_queries, In::kQ, i);
      add(at(bounds_[AttentionGradient::kDv], sizes_.keys, j),
          kept * p * (of_p + (double(sizes_.queries) + 4) * kEps) + kTiny, In::kDy, i);
    }
  }

  const JudgedNode& n_;
  std::vector<Tensor>& bounds_;
  const AttentionAttrs& attrs_;
  AttentionSizes sizes_;
  std::int64_t row_, head_;
  double scale_;
  std::vector<double> score_, of_score_;
};

void for_each_head(const JudgedNode& n, std::vector<Tensor>& bounds, void (HeadBounds::*fill)()) {
  const AttentionSizes sizes = attention_sizes(n.input(In::kQ).shape(), n.input(In::kK).shape(),
                                               n.attrs<AttentionAttrs>().heads);
  for (std::int64_t row = 0; row < sizes.batch; ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      (HeadBounds(n, bounds, row, head).*fill)();
    }
  }
}

void attention(const JudgedNode& n, std::vector<Tensor>& bounds) {
  for_each_head(n, bounds, &HeadBounds::forward);
}
void attention_backward(const JudgedNode& n, std::vector<Tensor>& bounds) {
  for_each_head(n, bounds, &HeadBounds::backward);
}

}  // namespace

void add_attention_rules(BoundRules& rules) {
  rules["attention"] = attention;
  rules["attention_backward"] = attention_backward;
}

}  // namespace keel::compare
