// Bounds of norms for kernels of any program: what rounding may do to mean and variance in two
// passes, and from there to every result. The formulas are those of docs/numerics.md, Norms of any
// program. Unlike keel's own promise they grow with the number of elements and with mean / sd.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/norm_view.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/norm/norm.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

constexpr std::string_view kNext = "next_";  // begins the name of a state's next value

// How far the statistics of a group may be off: the mean, and 1 / s in relative terms.
struct StatisticError {
  double mean = 0, rstd = 0;
};

// Statistics of a state in evaluation are read and not computed.
bool reads_statistics(const Node& node) { return node.attrs.number("training") == 0; }

// From relative errors of a variance to those of 1 / s. At 1 and above nothing is known of it.
double of_rstd(double of_variance) {
  if (!(of_variance < 1)) return INFINITY;
  return of_variance / (2 * (1 - of_variance)) + 3 * kEps;
}

// The statistics of all groups of a forward node, computed from x.
class Statistics {
 public:
  Statistics(const ComparedNode& n, const NormView& view)
      : view_(view), x_(view.groups()), squares_(view.groups()) {
    const auto x = n.in(NormInput::kX);
    for (std::size_t e = 0; e < view.size(); ++e) {
      if (!view.is_kept(e)) continue;
      const std::size_t k = view.group(e);
      const double distance = x[e] - view.mean(k);
      x_[k].add(x[e]);
      squares_[k].add(distance * distance);
    }
    reads_ = reads_statistics(n.node());
  }

  StatisticError of(std::size_t k) const {
    if (reads_) return {kEps * std::abs(view_.mean(k)), 4 * kEps};
    StatisticError error;
    if (view_.is_centred()) error.mean = of_mean(k);
    error.rstd = of_rstd(of_variance(k));
    return error;
  }
  // The relative error of s^2: two passes over x, the second with an inexact mean; kappa is the
  // root of mean(x^2) / s^2 and scales the roundings of x - mean.
  double of_variance(std::size_t k) const {
    const double p = any_relative_error(squares_[k]), rstd = std::abs(view_.rstd(k));
    const double kappa = std::sqrt(x_[k].squares / std::max(x_[k].count, 1.0)) * rstd;
    const double shift = view_.is_centred() ? of_mean(k) * rstd : 0;
    return p * (2 + kappa) + p * kappa * p * kappa + 3 * kEps + shift * shift;
  }
  const SumTerms& x(std::size_t k) const { return x_[k]; }

 private:
  double of_mean(std::size_t k) const {
    return any_sum_error(x_[k]).largest / std::max(x_[k].count, 1.0) +
           kEps * std::abs(view_.mean(k));
  }

  const NormView& view_;
  std::vector<SumTerms> x_, squares_;
  bool reads_ = false;
};

// keep * former + (1 - keep) * batch, `of_batch` off.
double of_running(double keep, double former, double batch, double of_batch) {
  return (1 - keep) * of_batch +
         4 * kEps * (std::abs(keep * former) + (1 - keep) * std::abs(batch)) + kTiny;
}

// The next value of a running mean, or of a running mean of squares or variance.
void bound_running(const ComparedNode& n, const NormView& view, const Statistics& statistics,
                   int output, Bounds& bounds) {
  const std::string_view name = n.node().op->output_names[std::size_t(output)];
  const auto state = n.in(input_place(*n.node().op, name.substr(kNext.size())));
  const double keep = n.node().attrs.number("keep").value();
  const auto bound = bounds[std::size_t(output)].as<double>();
  for (std::size_t k = 0; k < bound.size(); ++k) {
    if (name.ends_with("mean")) {
      bound[k] = of_running(keep, state[k], view.mean(k), statistics.of(k).mean);
      continue;
    }
    // The state may have the variance over one less.
    const double fewer = std::max(statistics.x(k).count - 1, 1.0);
    const double unbiased = view.is_centred() ? std::max(statistics.x(k).count, 1.0) / fewer : 1;
    const double s2 = unbiased / std::pow(view.rstd(k), 2);
    bound[k] = of_running(keep, state[k], s2, statistics.of_variance(k) * s2);
  }
}

void forward(const ComparedNode& n, Bounds& bounds) {
  const NormView view(n, false);
  const Statistics statistics(n, view);
  const NormPlaces& places = view.places();
  std::vector<StatisticError> errors;
  for (std::size_t k = 0; k < view.groups(); ++k) {
    errors.push_back(statistics.of(k));
    if (places.mean >= 0) bounds[std::size_t(places.mean)].as<double>()[k] = errors[k].mean + kTiny;
    bounds[std::size_t(places.rstd)].as<double>()[k] =
        errors[k].rstd * std::abs(view.rstd(k)) + kTiny;
  }
  for (std::size_t e = 0; e < view.size(); ++e) {
    const std::size_t k = view.group(e);
    const double rstd = std::abs(view.rstd(k)), x = std::abs(n.in(NormInput::kX)[e]);
    const double of_xhat = rstd * errors[k].mean + std::abs(view.xhat(e)) * errors[k].rstd +
                           2 * kEps * rstd * (x + std::abs(view.mean(k)));
    const bool has_bias = places.bias >= 0 && n.has(places.bias);
    const double bias = has_bias ? std::abs(n.in(places.bias)[view.feature(e)]) : 0;
    bounds[0].as<double>()[e] =
        std::abs(view.gain(e)) * of_xhat + 4 * kEps * (std::abs(n.out(0)[e]) + bias) + kTiny;
  }
  for (int output = 1; output < int(n.outputs.size()); ++output) {
    const bool is_next = n.node().op->output_names[std::size_t(output)].starts_with(kNext);
    if (is_next) bound_running(n, view, statistics, output, bounds);
  }
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), element by element, and the parameters' gradients.
class Backward {
 public:
  Backward(const ComparedNode& n, Bounds& bounds)
      : n_(n), bounds_(bounds), view_(n, true), groups_(view_.groups()) {
    for (std::size_t e = 0; e < view_.size(); ++e) take(e);
  }

  void bound_dx() {
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const Group& t = groups_[view_.group(e)];
      const double share = t.share(is_length());
      const double p = any_relative_error(t.products), of_g = any_relative_error(t.g);
      // Kernels that take sum(g x) - mean sum(g) for sum(g (x - mean)).
      const double h = view_.is_centred() ? std::max(of_g, any_relative_error(t.gx)) : 0;
      const double mean_g = subtracts_mean() ? t.g.sizes * t.share(false) : 0;
      const double product = t.products.sizes * share, spread = t.spread * share;
      const double g = std::abs(gradient(e)), xhat = std::abs(view_.xhat(e)), own = unit(e);
      // Statistics that the other program has computed for itself.
      const double of_xhat = saved_error(e), of_scale = saved_scale(e);
      const double moved = of_scale * (g + mean_g + 3 * xhat * product) +
                           of_xhat * (product + t.moved * share) + xhat * t.moved * share;
      const double of_spread = (h + 4 * kEps) * spread;
      const double rounded = 6 * kEps * g + (of_g + 6 * kEps) * mean_g +
                             xhat * ((p + 6 * kEps) * product + of_spread) +
                             6 * kEps * own * (product + of_spread);
      bounds_[0].as<double>()[e] = std::abs(view_.rstd(view_.group(e))) * (rounded + moved) + kTiny;
    }
  }

  void bound_parameters() {
    for (const int output : {1, 2}) {
      if (output < int(n_.outputs.size()) && n_.outputs[std::size_t(output)].elements() > 0) {
        bound_parameter(output == 1, bounds_[std::size_t(output)].as<double>());
      }
    }
  }

 private:
  // The sums of one group: of g, of g x, of g xhat, of |g| (|x| + |mean|) rstd, and of |g| times
  // what xhat is off by.
  struct Group {
    SumTerms g, gx, products;
    double spread = 0, moved = 0;

    // The factor that turns a sum into a mean; it divides by one less where the statistic is
    // unbiased.
    double share(bool is_length) const { return is_length ? 1 : 1 / std::max(g.count - 1, 1.0); }
  };

  bool is_length() const { return forward_norm(*n_.node().op)->norm->by_length; }
  // Whether dx has the mean of g; it may have that without reading the mean of x.
  bool subtracts_mean() const {
    const auto detached = n_.node().attrs.number("detach_mean");
    return detached ? *detached == 0 : view_.is_centred();
  }
  double dy(std::size_t e) const { return n_.in(view_.places().dy)[e]; }
  double gradient(std::size_t e) const { return dy(e) * view_.gain(e); }
  // (|x| + |mean|) rstd: what xhat is rounded in proportion to.
  double unit(std::size_t e) const {
    const std::size_t k = view_.group(e);
    const double x = n_.has(NormInput::kX) ? std::abs(n_.in(NormInput::kX)[e]) : 0;
    return (x + std::abs(view_.mean(k))) * std::abs(view_.rstd(k));
  }
  double saved_scale(std::size_t e) const {
    const std::size_t k = view_.group(e);
    return n_.input_error(view_.places().d_rstd, k) / std::abs(view_.rstd(k));
  }
  double saved_error(std::size_t e) const {
    const std::size_t k = view_.group(e);
    const int mean = view_.places().d_mean;
    const double shift = mean >= 0 ? n_.input_error(mean, k) * std::abs(view_.rstd(k)) : 0;
    return shift + std::abs(view_.xhat(e)) * saved_scale(e);
  }

  void take(std::size_t e) {
    if (!view_.is_kept(e)) return;
    Group& t = groups_[view_.group(e)];
    const double g = gradient(e);
    t.g.add(g);
    t.gx.add(n_.has(NormInput::kX) ? g * n_.in(NormInput::kX)[e] : 0);
    t.products.add(g * view_.xhat(e));
    t.spread += std::abs(g) * unit(e);
    t.moved += std::abs(g) * saved_error(e);
  }

  void bound_parameter(bool is_gain, std::span<double> bound) {
    std::vector<SumTerms> terms(bound.size());
    for (std::size_t e = 0; e < view_.size(); ++e) {
      const std::size_t p = bound.size() == 1 ? 0 : view_.feature(e);
      terms[p].add(is_gain ? dy(e) * view_.xhat(e) : dy(e));
      if (is_gain) bound[p] += std::abs(dy(e)) * (4 * kEps * unit(e) + saved_error(e));
    }
    for (std::size_t p = 0; p < bound.size(); ++p) {
      bound[p] += any_sum_error(terms[p]).largest + kTiny;
    }
  }

  const ComparedNode& n_;
  Bounds& bounds_;
  NormView view_;
  std::vector<Group> groups_;
};

void backward(const ComparedNode& n, Bounds& bounds) {
  Backward norm(n, bounds);
  norm.bound_dx();
  norm.bound_parameters();
}

}  // namespace

bool is_plain_norm(const OpInfo& op) {
  const OpInfo& forward = *forward_norm(op);
  const auto has = [&](std::string_view input) { return input_place(forward, input) >= 0; };
  return forward.norm->largest_factor == nullptr && !has("step") && !has("nu") && !has("gz") &&
         output_place(forward, "rstd") >= 0 && output_place(forward, "score") < 0;
}

BoundRule general_norm_rule(const Node& node) {
  if (forward_norm(*node.op) == nullptr || !is_plain_norm(*node.op)) return nullptr;
  // s = sqrt(SS / N) + eps is another formula, which these rules do not have.
  if (node.attrs.number("eps_outside").value_or(0) != 0) return nullptr;
  return node.op->norm ? forward : backward;
}

}  // namespace keel::compare
