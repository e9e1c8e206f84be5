// Bounds of the norms of elements, y = gain f(u) + bias with u = alpha x + shift (NormCurve), by
// running error analysis: f and its derivative are off by what u is off, and by their own error.
#include <cmath>

#include "frontend/compare/bounds/running_error.h"
#include "src/ops/norm/norm.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm/sizes.h"

namespace keel::compare {
namespace {

// Kernels of any program: their f is off by so many eps, and so is a derivative that is formed as a
// difference from 1, in units of 1.
constexpr double kAnyFunction = 8;

const NormCurve* curve_of(const OpInfo& op) {
  const OpInfo* forward = forward_norm(op);
  return forward == nullptr ? nullptr : forward->norm->curve;
}

// The terms of each element of x.
class CurveNode {
 public:
  explicit CurveNode(const ComparedNode& n)
      : n_(n),
        curve_(*curve_of(*n.node().op)),
        width_(std::size_t(
            row_sizes(n.input(NormInput::kX).shape(), std::int64_t(*n.node().attrs.number("axes")))
                .width)),
        alpha_(number("alpha")),
        shift_(number("shift")) {}

  std::size_t size() const { return n_.in(NormInput::kX).size(); }
  std::size_t feature(std::size_t e) const { return e % width_; }
  double x(std::size_t e) const { return n_.in(NormInput::kX)[e]; }
  double dy(std::size_t e) const { return n_.in(place("dy"))[e]; }
  const Err& alpha() const { return alpha_; }
  // An input along the row, or what stands in its place.
  Err along(std::string_view name, std::size_t e, double otherwise) const {
    const int i = place(name);
    return i >= 0 && n_.has(i) ? n_.in(i)[feature(e)] : otherwise;
  }
  Err value(std::size_t e) const {
    return applied(curve_.value, u(e), n_.is_external() ? kAnyFunction : 2 * curve_.value_error, 0);
  }
  // k = dy gain f'(u).
  Err k(std::size_t e) const {
    const bool any = n_.is_external();
    const Err slope = applied(curve_.slope, u(e), any ? kAnyFunction : 2 * curve_.slope_error,
                              any ? kAnyFunction : 0);
    // Where f' is 0 in float64, far beyond what float32 holds, it is 0 in kernels, too.
    if (slope.value == 0) return {};
    return Err(dy(e)) * along("gain", e, 1) * slope;
  }

 private:
  int place(std::string_view name) const { return input_place(*n_.node().op, name); }
  Err number(std::string_view name) const {
    const int i = place(name);
    return i >= 0 && n_.has(i) ? n_.scalar(i) : 0;
  }
  Err u(std::size_t e) const { return alpha_ * Err(x(e)) + shift_; }

  // f of a number that is off: f is moved to both its ends, and to its peak where that lies between
  // them. Its own error is `relative` eps of the result and `absolute` eps of 1.
  static Err applied(double (*f)(double), const Err& u, double relative, double absolute) {
    const double value = f(u.value);
    double moved =
        std::max(std::abs(f(u.value - u.error) - value), std::abs(f(u.value + u.error) - value));
    if (std::abs(u.value) < u.error) moved = std::max(moved, std::abs(f(0) - value));
    return {value, moved + kEps * (relative * std::abs(value) + absolute) + kTiny};
  }

  const ComparedNode& n_;
  const NormCurve& curve_;
  std::size_t width_;
  Err alpha_, shift_;
};

void forward_curve(const ComparedNode& n, NodeBounds& bounds) {
  const CurveNode node(n);
  for (std::size_t e = 0; e < node.size(); ++e) {
    const Err y = node.along("gain", e, 1) * node.value(e) + node.along("bias", e, 0);
    bounds[NormOutput::kY].as<double>()[e] = y.error;
  }
}

// The sums over rows, or over all elements, that give a parameter's gradient: keel's are within
// kBackwardBound units of the sum of the terms' sizes.
class CurveSums {
 public:
  CurveSums(const ComparedNode& n, NodeBounds& bounds, std::string_view name)
      : is_external_(n.is_external()), output_(output_place(*n.node().op, name)) {
    if (output_ < 0) return;
    bound_ = bounds[std::size_t(output_)].as<double>();
    terms_.resize(bound_.size());
  }
  void add(std::size_t feature, const Err& term) {
    if (bound_.empty()) return;
    const std::size_t p = bound_.size() == 1 ? 0 : feature;
    terms_[p].add(term.value);
    bound_[p] += term.error;
  }
  void finish() {
    for (std::size_t p = 0; p < bound_.size(); ++p) {
      bound_[p] += kTiny + (is_external_ ? any_sum_error(terms_[p]).largest
                                         : kBackwardBound * 2 * kEps * terms_[p].sizes);
    }
  }

 private:
  bool is_external_;
  int output_;
  std::span<double> bound_;
  std::vector<SumTerms> terms_;
};

void backward_curve(const ComparedNode& n, NodeBounds& bounds) {
  const CurveNode node(n);
  CurveSums gain(n, bounds, "dgain"), bias(n, bounds, "dbias"), alpha(n, bounds, "dalpha"),
      shift(n, bounds, "dshift");
  for (std::size_t e = 0; e < node.size(); ++e) {
    const Err k = node.k(e);
    bounds[NormGradient::kDx].as<double>()[e] = (node.alpha() * k).error;
    gain.add(node.feature(e), Err(node.dy(e)) * node.value(e));
    bias.add(node.feature(e), node.dy(e));
    alpha.add(0, k * Err(node.x(e)));
    shift.add(0, k);
  }
  for (CurveSums* sums : {&gain, &bias, &alpha, &shift}) sums->finish();
}

}  // namespace

void add_curve_rules(BoundRules& rules) {
  for (const OpInfo* op : norm_ops()) {
    if (curve_of(*op) != nullptr) rules[op->name] = op->norm ? forward_curve : backward_curve;
  }
}

}  // namespace keel::compare
