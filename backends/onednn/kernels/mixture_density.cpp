// The density of a mixture of normal distributions of the plane. Its terms are computed in double:
// their sizes differ by exponentials, and they are few beside the products before them.
//
// With r = rho^ and sinh, cosh of it: 1 / (1 - rho^2) = cosh^2, and for p = a cosh - b sinh and
// q = b cosh - a sinh, which are formed of sums that cannot cancel where rho is near 1,
// Z / (1 - rho^2) = p^2 + b^2, (a - rho b) / (1 - rho^2) = p cosh and (b - rho a) / ... = q cosh.
#include "src/ops/mixture_density.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

using In = MixtureInput;
using Part = MixturePart;

struct MixturePlan {
  MixtureSizes sizes;
  MixtureAttrs attrs;

  static MixturePlan of(const NodeContext& context) {
    return {mixture_sizes(context.input(In::kY).shape), context.attrs<MixtureAttrs>()};
  }
  std::int64_t width() const { return 1 + Part::kCount * sizes.components; }
  std::int64_t block() const { return kBlockElements / (16 * width()) + 1; }
};

// A hat within its limits.
struct Hat {
  double value;
  bool is_held;
};
Hat at_least(double x, double least) { return {x < least ? least : x, x < least}; }
Hat within(double x, double limit) {
  return {std::abs(x) > limit ? std::copysign(limit, x) : x, std::abs(x) > limit};
}

// A component of a row at its point.
struct Component {
  Hat s1, s2, r;
  double a, b, p, q, cosh;

  int held() const { return int(s1.is_held) + int(s2.is_held) + int(r.is_held); }
  double log_density() const {
    const double size = std::abs(r.value);
    // log(1 - rho^2) = -2 log cosh
    const double log_cosh = size + std::log1p(std::exp(-2 * size)) - std::numbers::ln2;
    return -std::log(2 * std::numbers::pi) - s1.value - s2.value + log_cosh - (p * p + b * b) / 2;
  }
};

// Row i of y beside its point.
struct PointRow {
  const MixturePlan& plan;
  const float *y, *point;

  PointRow(const Binding& binding, const MixturePlan& of, std::int64_t i)
      : plan(of),
        y(binding.inputs[In::kY].as<float>() + i * of.width()),
        point(binding.inputs[In::kPoints].as<float>() + 3 * i) {}

  std::int64_t place(Part::Place part, std::int64_t j) const {
    return 1 + part * plan.sizes.components + j;
  }
  double at(Part::Place part, std::int64_t j) const { return y[place(part, j)]; }
  bool lifts() const { return point[2] != 0; }

  Component component(std::int64_t j) const {
    Component c{};
    c.s1 = at_least(at(Part::kSigma1, j), plan.attrs.least_log_sigma);
    c.s2 = at_least(at(Part::kSigma2, j), plan.attrs.least_log_sigma);
    c.r = within(at(Part::kRho, j), plan.attrs.largest_rho);
    c.a = (point[0] - at(Part::kMean1, j)) * std::exp(-c.s1.value);
    c.b = (point[1] - at(Part::kMean2, j)) * std::exp(-c.s2.value);
    // cosh - |sinh| = exp(-|r|)
    const double small = std::exp(-std::abs(c.r.value));
    c.cosh = (1 / small + small) / 2;
    const double sign = std::copysign(1.0, c.r.value);
    c.p = (c.a - sign * c.b) * c.cosh + sign * c.b * small;
    c.q = (c.b - sign * c.a) * c.cosh + sign * c.a * small;
    return c;
  }
};

// log of a sum of exponentials, term by term.
class LogSum {
 public:
  void add(double x) {
    if (x == -HUGE_VAL) return;
    if (x > largest_) {
      sum_ = sum_ * std::exp(largest_ - x) + 1;
      largest_ = x;
    } else {
      sum_ += std::exp(x - largest_);
    }
  }
  double value() const { return largest_ + std::log(sum_); }

 private:
  double largest_ = -HUGE_VAL, sum_ = 0;
};

struct RowSums {
  LogSum weights, all;
  int held = 0;
};

RowSums sums_of(const PointRow& row) {
  RowSums sums;
  for (std::int64_t j = 0; j < row.plan.sizes.components; ++j) {
    const Component c = row.component(j);
    sums.weights.add(row.at(Part::kPi, j));
    sums.all.add(row.at(Part::kPi, j) + c.log_density());
    sums.held += c.held();
  }
  return sums;
}

bool counts(const Binding& b, std::int64_t i) {
  const TensorRef& mask = b.inputs[In::kMask];
  return !mask || mask.as<std::uint8_t>()[i] != 0;
}

void forward(const Binding& b, const MixturePlan& plan) {
  float* nll = b.outputs[MixtureOutput::kNll].as<float>();
  float* held = b.outputs[MixtureOutput::kHeld].as<float>();
  parallel_range(plan.sizes.rows, plan.block(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      nll[i] = held[i] = 0;
      if (!counts(b, i)) continue;
      const PointRow row(b, plan, i);
      const RowSums sums = sums_of(row);
      const double pen = row.lifts() ? row.y[0] : -row.y[0];
      const double of_pen = std::max(pen, 0.0) + std::log1p(std::exp(-std::abs(pen)));
      nll[i] = float(sums.weights.value() - sums.all.value() + of_pen);
      held[i] = float(sums.held);
    }
  });
}

// dy of one component; dy may lie over y, so that all of it is read before.
void backward_component(const PointRow& row, std::int64_t j, const RowSums& sums, double g,
                        float* dy) {
  const Component c = row.component(j);
  const double weight = row.at(Part::kPi, j);
  const double pi = std::exp(weight - sums.weights.value());
  const double gamma = g * std::exp(weight + c.log_density() - sums.all.value());
  const double along1 = c.p * c.cosh, along2 = c.q * c.cosh;
  dy[row.place(Part::kPi, j)] = float(g * pi - gamma);
  dy[row.place(Part::kMean1, j)] = float(-gamma * along1 * std::exp(-c.s1.value));
  dy[row.place(Part::kMean2, j)] = float(-gamma * along2 * std::exp(-c.s2.value));
  dy[row.place(Part::kSigma1, j)] = c.s1.is_held ? 0 : float(-gamma * (c.a * along1 - 1));
  dy[row.place(Part::kSigma2, j)] = c.s2.is_held ? 0 : float(-gamma * (c.b * along2 - 1));
  // a b + rho (1 - p^2 - b^2) = b p / cosh + rho (1 - p^2)
  const double drho = c.b * c.p / c.cosh + std::tanh(c.r.value) * (1 - c.p * c.p);
  dy[row.place(Part::kRho, j)] = c.r.is_held ? 0 : float(-gamma * drho);
}

void backward(const Binding& b, const MixturePlan& plan) {
  const float* dnll = b.inputs[In::kDnll].as<float>();
  float* dy = b.outputs[0].as<float>();
  parallel_range(plan.sizes.rows, plan.block(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const d = dy + i * plan.width();
      if (!counts(b, i)) {
        std::fill_n(d, plan.width(), 0.0f);
        continue;
      }
      const PointRow row(b, plan, i);
      const RowSums sums = sums_of(row);
      d[0] = float(dnll[i] * (double(row.lifts()) - 1 / (1 + std::exp(double(row.y[0])))));
      for (std::int64_t j = 0; j < plan.sizes.components; ++j) {
        backward_component(row, j, sums, dnll[i], d);
      }
    }
  });
}

}  // namespace

Prepared prepare_mixture_density(const NodeContext& context) {
  return kernel_of([plan = MixturePlan::of(context)](const Binding& b) { forward(b, plan); });
}

Prepared prepare_mixture_density_backward(const NodeContext& context) {
  return kernel_of([plan = MixturePlan::of(context)](const Binding& b) { backward(b, plan); });
}

}  // namespace keel::onednn
