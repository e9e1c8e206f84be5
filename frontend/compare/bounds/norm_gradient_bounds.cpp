// Bounds of the backwards of norms: kBackwardBound units in the last place on the terms that cancel
// (docs/numerics.md).
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/norm_view.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm/weight_norm.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr double kBackward = kBackwardBound * 2 * kEps;

// The terms that make up the dx of one group.
struct GroupTerms {
  double largest_g = 0, largest_xhat = 0, products = 0;  // products: the sum of |g xhat|
  double sum_g = 0, kept = 0;                            // sum_g: of |g|
  double by_mean = 0, by_deviation = 0;  // of a penalty, the latter to be multiplied by xhat

  double mean_product() const { return products / std::max(kept, 1.0); }
  double mean_g() const { return sum_g / std::max(kept, 1.0); }
};

// The terms of the sums that give the parameters' gradients, one per feature.
struct ParameterTerms {
  std::vector<double> gain, bias;
};

class NormGradient {
 public:
  NormGradient(const ComparedNode& n, Bounds& bounds)
      : n_(n), bounds_(bounds), view_(n, true), terms_(view_.groups()) {
    for (std::size_t e = 0; e < view_.size(); ++e) take(e);
    take_penalty();
  }

  void bound_dx() {
    if (view_.is_scaled()) return bound_scaled_dx();
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const std::size_t k = view_.group(e);
      bounds_[0].as<double>()[e] =
          kBackward * (dx_scale(k) + of_penalty(k)) + of_centre_in_dx(k) + kTiny;
    }
  }

  // dgain is the sum of dy (r xhat + d): an xhat that a mean was subtracted for is off by eps of 1.
  void bound_parameters() {
    for (int output : {1, 2}) {
      if (output < int(n_.outputs.size())) bound_parameter(output);
    }
  }

  // The next values of the states that multiply xhat in dx, if there are any:
  //   nu' = nu (1 - (1 - alpha_b) Gamma) + (1 - alpha_b) Lambda
  //   gz', of whose rows one is the mean of g z, or nu, and the others are copies
  //   nu' beside gz, between nu and a mean of the rows
  void bound_slope() {
    const OpInfo& op = *n_.node().op;
    const int gamma = input_place(op, "gamma");
    bound_state(output_place(op, "next_gz"), [&](std::size_t k) { return mean_product(k); });
    bound_state(output_place(op, "next_nu"), [&](std::size_t k) {
      if (gamma < 0) return std::max(mean_product(k), slope(k));
      const double share = 1 - n_.node().attrs.number("alpha_b").value();
      return share * mean_product(k) + slope(k) * (1 + share * std::abs(n_.in(gamma)[k]));
    });
  }

 private:
  double r(std::size_t k) const { return of(view_.places().r, k, 1); }
  double of(int place, std::size_t k, double otherwise) const {
    return place >= 0 && n_.has(place) ? std::abs(n_.in(place)[k]) : otherwise;
  }
  double dy(std::size_t e) const { return std::abs(n_.in(view_.places().dy)[e]); }
  // The mean of |g xhat|, g with r.
  double mean_product(std::size_t k) const { return terms_[k].mean_product() * r(k); }

  // An output of one or several rows of one value a group, on its size.
  template <class Size>
  void bound_state(int output, const Size& size) {
    if (output < 0) return;
    const auto bound = bounds_[std::size_t(output)].as<double>();
    for (std::size_t i = 0; i < bound.size(); ++i) {
      bound[i] = kBackward * size(i % view_.groups()) + kTiny;
    }
  }

  void take(std::size_t e) {
    GroupTerms& t = terms_[view_.group(e)];
    const double g = dy(e) * std::abs(view_.gain(e)) * view_.phi(e);
    const double xhat = std::abs(view_.xhat(e));
    t.largest_g = std::max(t.largest_g, g);
    t.largest_xhat = std::max(t.largest_xhat, xhat);
    t.products += g * xhat;
    t.sum_g += g;
    t.kept += view_.is_kept(e) ? 1 : 0;
  }

  // The term that a penalty adds to dx: it keeps mean and 1 / rstd near those of the running
  // statistics.
  void take_penalty() {
    const Attrs& attrs = n_.node().attrs;
    const double of_mean = attrs.number("mean_penalty").value_or(0),
                 of_deviation = attrs.number("deviation_penalty").value_or(0);
    const int mean = input_place(*n_.node().op, "next_running_mean"),
              variance = input_place(*n_.node().op, "next_running_var");
    if (mean < 0 || !n_.has(mean) || of_mean + of_deviation == 0) return;
    for (std::size_t k = 0; k < terms_.size(); ++k) {
      const double s = std::sqrt(n_.in(variance)[k] + attrs.number("eps").value());
      const double weight = 2 / std::max(terms_[k].kept, 1.0);
      terms_[k].by_mean = weight * of_mean * std::abs(view_.mean(k) - n_.in(mean)[k]);
      terms_[k].by_deviation = weight * of_deviation * std::abs(view_.deviation(k) - s);
    }
  }
  double of_penalty(std::size_t k) const {
    return terms_[k].by_mean + terms_[k].by_deviation * terms_[k].largest_xhat;
  }

  // |slope|, or more: a state, an average over former steps (the rows of a state), or the mean of
  // g xhat.
  double slope(std::size_t k) const {
    const auto is_given = [&](int state) { return state >= 0 && n_.has(state); };
    const int state = view_.places().slope, of_steps = view_.places().rows;
    if (is_given(state) && !is_given(of_steps)) return std::abs(n_.in(state)[k]);
    double slope = std::max(terms_[k].mean_product(), of(state, k, 0));
    if (!is_given(of_steps)) return slope;
    const auto rows = n_.in(of_steps);
    for (std::size_t i = k; i < rows.size(); i += view_.groups()) {
      slope = std::max(slope, std::abs(rows[i]));
    }
    return slope;
  }

  double factor(std::size_t k) const {
    return of(view_.places().factor, k, std::abs(view_.rstd(k))) * r(k);
  }
  // The saved mean is rounded, and kernels may put that right or not: how far xhat is off by it.
  double of_centre(std::size_t k) const { return kEps * std::abs(view_.mean(k) * view_.rstd(k)); }
  // In -slope xhat, slope being the mean of g xhat.
  double of_centre_in_dx(std::size_t k) const {
    const GroupTerms& t = terms_[k];
    return of_centre(k) * (factor(k) * (slope(k) + t.largest_xhat * t.mean_g()) + t.by_deviation);
  }
  double dx_scale(std::size_t k) const {
    return factor(k) * std::max(terms_[k].largest_g, terms_[k].largest_xhat * slope(k));
  }

  // dx = row_rstd (dz - z mean(dz z)) of what dx is without a scaling, dz.
  void bound_scaled_dx() {
    const std::size_t width = view_.scaling_width();
    for (std::size_t first = 0; first < view_.size(); first += width) {
      double mean = 0;
      for (std::size_t e = first; e < first + width; ++e) {
        mean += dx_scale(view_.group(e)) * scaled(e) / double(width);
      }
      for (std::size_t e = first; e < first + width; ++e) {
        bounds_[0].as<double>()[e] =
            2 * kBackward * view_.scaling(e) * (dx_scale(view_.group(e)) + scaled(e) * mean) +
            kTiny;
      }
    }
  }
  double scaled(std::size_t e) const { return std::abs(n_.in(0)[e]) * view_.scaling(e); }

  void bound_parameter(int output) {
    const auto bound = bounds_[std::size_t(output)].as<double>();
    if (bound.empty()) return;
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const std::size_t k = view_.group(e), p = bound.size() == 1 ? 0 : view_.feature(e);
      const double unit = view_.is_centred() ? 1 : 0;
      const double xhat =
          std::max(unit, std::abs(view_.xhat(e))) * r(k) + of(view_.places().d, k, 0);
      bound[p] += kBackward * dy(e) * (output == 1 ? xhat : 1);
      if (output == 1) bound[p] += dy(e) * of_centre(k) * r(k);
    }
    for (double& b : bound) b += kTiny;
  }

  const ComparedNode& n_;
  Bounds& bounds_;
  NormView view_;
  std::vector<GroupTerms> terms_;
};

void gradient(const ComparedNode& n, Bounds& bounds) {
  NormGradient norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters();
  norm.bound_slope();
}

// dg = sum of dw u;  dv = g / n (dw - u dg)
void weight_norm_backward(const ComparedNode& n, Bounds& bounds) {
  using In = WeightNormBackwardInput;
  const ColumnSizes sizes = weight_sizes(n.input(In::kV).shape(), n.attrs<WeightNormAttrs>());
  const auto v = n.in(In::kV), dw = n.in(In::kDw);
  const auto unit = [&](std::size_t e) {
    return e / std::size_t(sizes.inner) % std::size_t(sizes.channels);
  };
  const auto u = [&](std::size_t e) { return std::abs(v[e] * n.in(In::kRstd)[unit(e)]); };
  const auto of_dg = bounds[WeightNormGradient::kDg].as<double>();
  for (std::size_t e = 0; e < v.size(); ++e) of_dg[unit(e)] += std::abs(dw[e]) * u(e);
  for (std::size_t e = 0; e < v.size(); ++e) {
    const double factor = std::abs(n.in(In::kG)[unit(e)] * n.in(In::kRstd)[unit(e)]);
    bounds[WeightNormGradient::kDv].as<double>()[e] =
        kBackward * factor * (std::abs(dw[e]) + u(e) * of_dg[unit(e)]) + kTiny;
  }
  for (double& b : of_dg) b = kBackward * b + kTiny;
}

}  // namespace

void add_norm_gradient_rules(BoundRules& rules) {
  for (const OpInfo* op : norm_ops()) {
    if (op->forward != nullptr) rules[op->name] = gradient;
  }
  rules["weight_norm_backward"] = weight_norm_backward;
}

}  // namespace keel::compare
