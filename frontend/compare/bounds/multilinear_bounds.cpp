// Bounds of multi-linear attention and of its backward, query by query: every number is a sum of
// products whose factors may be off themselves (docs/numerics.md).
#include <cmath>

#include "frontend/compare/bounds/product_sum.h"
#include "src/ops/multilinear_attention.h"

namespace keel::compare {
namespace multilinear {
namespace {

using In = MultilinearInput;
using Out = MultilinearGradient;
using Sums = std::vector<ProductSum>;

// The operands, by sequence, position and index.
struct Operands {
  const ComparedNode& n;
  MultilinearSizes sizes;
  bool causal;

  explicit Operands(const ComparedNode& node)
      : n(node),
        sizes(multilinear_sizes(node.input(In::kA).shape(), node.input(In::kOut).shape())),
        causal(node.attrs<MultilinearAttrs>().causal) {}

  std::int64_t seen(std::int64_t i) const { return causal ? i + 1 : sizes.positions; }
  std::size_t at(std::int64_t b, std::int64_t i, std::int64_t r) const {
    return std::size_t((b * sizes.positions + i) * sizes.rank + r);
  }
  double of(int place, std::int64_t b, std::int64_t i, std::int64_t r) const {
    return n.in(place)[at(b, i, r)];
  }
  double p(std::int64_t j, std::int64_t r) const { return of(In::kP, 0, j, r); }
  std::size_t weight(std::int64_t j, std::int64_t k, std::int64_t f) const {
    return std::size_t((j * sizes.positions + k) * sizes.features + f);
  }
  double out(std::int64_t j, std::int64_t k, std::int64_t f) const {
    return n.in(In::kOut)[weight(j, k, f)];
  }
  std::size_t feature(std::int64_t b, std::int64_t i, std::int64_t f) const {
    return std::size_t((b * sizes.positions + i) * sizes.features + f);
  }
  // H_jr of a query: a product and the sum are rounded, so each term is rounded twice at the most.
  Err meets(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t r) const {
    const double content = of(In::kA, b, i, r) * of(In::kK, b, j, r);
    const double position = of(In::kC, b, i, r) * p(j, r);
    return {content + position, 2 * kEps * (std::abs(content) + std::abs(position)) + kTiny};
  }
  Err t(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t k) const {
    ProductSum sum;
    for (std::int64_t r = 0; r < sizes.rank; ++r) sum.add(meets(b, i, j, r), of(In::kV, b, k, r));
    return sum.result();
  }
  // Calls body(b, i) for every query of every sequence.
  template <class Body>
  void each_query(const Body& body) const {
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (std::int64_t i = 0; i < sizes.positions; ++i) body(b, i);
    }
  }
  // Calls body(j, k) for every pair that query i meets.
  template <class Body>
  void each_pair(std::int64_t i, const Body& body) const {
    for (std::int64_t j = 0; j < seen(i); ++j) {
      for (std::int64_t k = 0; k < seen(i); ++k) body(j, k);
    }
  }
};

void forward(const ComparedNode& n, NodeBounds& bounds) {
  const Operands o(n);
  o.each_query([&](std::int64_t b, std::int64_t i) {
    Sums y(std::size_t(o.sizes.features));
    o.each_pair(i, [&](std::int64_t j, std::int64_t k) {
      const Err t = o.t(b, i, j, k);
      for (std::int64_t f = 0; f < o.sizes.features; ++f) {
        y[std::size_t(f)].add(t, o.out(j, k, f));
      }
    });
    write(y, bounds[0], o.feature(b, i, 0));
  });
}

// The sums of the backward that have terms of many queries.
struct GradientSums {
  const Operands& o;
  Sums dk, dv, dp, dout;

  explicit GradientSums(const Operands& operands)
      : o(operands),
        dk(std::size_t(o.sizes.batch * o.sizes.positions * o.sizes.rank)),
        dv(dk.size()),
        dp(std::size_t(o.sizes.positions * o.sizes.rank)),
        dout(std::size_t(o.sizes.pairs() * o.sizes.features)) {}

  // The gradient of T_ijk; adds to dout and dv.
  Err take_pair(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t k) {
    const Err t = o.t(b, i, j, k);
    ProductSum sum;
    for (std::int64_t f = 0; f < o.sizes.features; ++f) {
      const double dy = o.n.in(In::kDy)[o.feature(b, i, f)];
      sum.add(o.out(j, k, f), dy);
      dout[o.weight(j, k, f)].add(t, dy);
    }
    const Err g = sum.result();
    for (std::int64_t r = 0; r < o.sizes.rank; ++r) {
      dv[o.at(b, k, r)].add(g, o.meets(b, i, j, r));
    }
    return g;
  }
  // M_jr of a query for all r.
  std::vector<Err> m_of(std::int64_t b, std::int64_t i, std::int64_t j) {
    Sums m(std::size_t(o.sizes.rank));
    for (std::int64_t k = 0; k < o.seen(i); ++k) {
      const Err g = take_pair(b, i, j, k);
      for (std::int64_t r = 0; r < o.sizes.rank; ++r) {
        m[std::size_t(r)].add(g, o.of(In::kV, b, k, r));
      }
    }
    std::vector<Err> results;
    for (const ProductSum& sum : m) results.push_back(sum.result());
    return results;
  }
  // All gradients of a query; writes those that no other query adds to.
  void take_query(std::int64_t b, std::int64_t i, NodeBounds& bounds) {
    Sums da(std::size_t(o.sizes.rank)), dc = da;
    for (std::int64_t j = 0; j < o.seen(i); ++j) {
      const std::vector<Err> m = m_of(b, i, j);
      for (std::int64_t r = 0; r < o.sizes.rank; ++r) {
        const auto at = std::size_t(r);
        da[at].add(m[at], o.of(In::kK, b, j, r));
        dc[at].add(m[at], o.p(j, r));
        dk[o.at(b, j, r)].add(m[at], o.of(In::kA, b, i, r));
        dp[o.at(0, j, r)].add(m[at], o.of(In::kC, b, i, r));
      }
    }
    write(da, bounds[Out::kDa], o.at(b, i, 0));
    write(dc, bounds[Out::kDc], o.at(b, i, 0));
  }
};

void backward(const ComparedNode& n, NodeBounds& bounds) {
  const Operands o(n);
  GradientSums sums(o);
  o.each_query([&](std::int64_t b, std::int64_t i) { sums.take_query(b, i, bounds); });
  write(sums.dk, bounds[Out::kDk]);
  write(sums.dv, bounds[Out::kDv]);
  write(sums.dp, bounds[Out::kDp]);
  write(sums.dout, bounds[Out::kDout]);
}

}  // namespace
}  // namespace multilinear

void add_multilinear_rules(BoundRules& rules) {
  rules["multilinear_attention"] = multilinear::forward;
  rules["multilinear_attention_backward"] = multilinear::backward;
}

}  // namespace keel::compare
