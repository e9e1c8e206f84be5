// The density of a mixture of normal distributions of the plane, point by point.
#include "src/ops/mixture_density.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

using In = MixtureInput;
using Part = MixturePart;

// One component of a row, at its point.
struct Component {
  double sigma1, sigma2, rho, c, a, b, z;  // c = 1 / (1 - rho^2)
  bool holds1, holds2, holds_rho;          // what is held at its limit

  double log_density() const {
    using std::numbers::pi;
    return -std::log(2 * pi * sigma1 * sigma2) + std::log(c) / 2 - c * z / 2;
  }
};

// Row i of y beside its point.
class PointRow {
 public:
  PointRow(const Binding& b, const MixtureSizes& sizes, const MixtureAttrs& attrs, std::int64_t i)
      : attrs_(attrs),
        count_(sizes.components),
        y_(b.inputs[In::kY].as<double>() + i * (1 + Part::kCount * count_)),
        point_(b.inputs[In::kPoints].as<double>() + 3 * i) {}

  std::int64_t place(Part::Place part, std::int64_t j) const { return 1 + part * count_ + j; }
  double at(Part::Place part, std::int64_t j) const { return y_[place(part, j)]; }
  double pen() const { return point_[2] != 0 ? 1 : 0; }
  double pen_hat() const { return y_[0]; }

  Component component(std::int64_t j) const {
    const double s1 = at(Part::kSigma1, j), s2 = at(Part::kSigma2, j), r = at(Part::kRho, j);
    const double least = attrs_.least_log_sigma, most = attrs_.largest_rho;
    Component of{};
    of.holds1 = s1 < least;
    of.holds2 = s2 < least;
    of.holds_rho = std::abs(r) > most;
    of.sigma1 = std::exp(of.holds1 ? least : s1);
    of.sigma2 = std::exp(of.holds2 ? least : s2);
    const double held = of.holds_rho ? std::copysign(most, r) : r;
    of.rho = std::tanh(held);
    of.c = std::cosh(held) * std::cosh(held);
    of.a = (point_[0] - at(Part::kMean1, j)) / of.sigma1;
    of.b = (point_[1] - at(Part::kMean2, j)) / of.sigma2;
    of.z = of.a * of.a + of.b * of.b - 2 * of.rho * of.a * of.b;
    return of;
  }

  // log sum_j exp of p^_j, with the log of component j's density where `weighs`.
  double log_sum(bool weighs) const {
    Eigen::VectorXd terms(count_);
    for (std::int64_t j = 0; j < count_; ++j) {
      terms[j] = at(Part::kPi, j) + (weighs ? component(j).log_density() : 0);
    }
    const double largest = terms.maxCoeff();
    return largest + std::log((terms.array() - largest).exp().sum());
  }

 private:
  const MixtureAttrs& attrs_;
  std::int64_t count_;
  const double *y_, *point_;
};

bool counts(const Binding& b, std::int64_t i) {
  const TensorRef& mask = b.inputs[In::kMask];
  return !mask || mask.as<std::uint8_t>()[i] != 0;
}

void forward(const Binding& b, const MixtureSizes& sizes, const MixtureAttrs& attrs) {
  Vector nll = vector(b.outputs[MixtureOutput::kNll]),
         held = vector(b.outputs[MixtureOutput::kHeld]);
  nll.setZero();
  held.setZero();
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    if (!counts(b, i)) continue;
    const PointRow row(b, sizes, attrs, i);
    // -log e is softplus(e^), and -log(1 - e) softplus(-e^).
    const double pen = row.pen() != 0 ? row.pen_hat() : -row.pen_hat();
    nll[i] = row.log_sum(false) - row.log_sum(true) + evaluate(EwCode::kSoftplus, {pen}, {});
    for (std::int64_t j = 0; j < sizes.components; ++j) {
      const Component of = row.component(j);
      held[i] += int(of.holds1) + int(of.holds2) + int(of.holds_rho);
    }
  }
}

void backward(const Binding& b, const MixtureSizes& sizes, const MixtureAttrs& attrs) {
  const Vector dnll = vector(b.inputs[In::kDnll]);
  const std::int64_t width = 1 + Part::kCount * sizes.components;
  Eigen::VectorXd d(width);  // dy may lie over y
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    d.setZero();
    if (counts(b, i)) {
      const PointRow row(b, sizes, attrs, i);
      const double of_weights = row.log_sum(false), of_all = row.log_sum(true);
      d[0] = row.pen() - evaluate(EwCode::kSigmoid, {-row.pen_hat()}, {});
      for (std::int64_t j = 0; j < sizes.components; ++j) {
        const Component of = row.component(j);
        const double pi = std::exp(row.at(Part::kPi, j) - of_weights);
        const double gamma = std::exp(row.at(Part::kPi, j) + of.log_density() - of_all);
        const double along1 = of.c * (of.a - of.rho * of.b), along2 = of.c * (of.b - of.rho * of.a);
        d[row.place(Part::kPi, j)] = pi - gamma;
        d[row.place(Part::kMean1, j)] = -gamma * along1 / of.sigma1;
        d[row.place(Part::kMean2, j)] = -gamma * along2 / of.sigma2;
        if (!of.holds1) d[row.place(Part::kSigma1, j)] = -gamma * (of.a * along1 - 1);
        if (!of.holds2) d[row.place(Part::kSigma2, j)] = -gamma * (of.b * along2 - 1);
        if (of.holds_rho) continue;
        d[row.place(Part::kRho, j)] = -gamma * (of.a * of.b + of.rho * (1 - of.c * of.z));
      }
      d *= dnll[i];
    }
    matrix(b.outputs[0], sizes.rows, width).row(i) = d;
  }
}

}  // namespace

Prepared prepare_mixture_density(const NodeContext& context) {
  const MixtureSizes sizes = mixture_sizes(context.input(In::kY).shape);
  const auto attrs = context.attrs<MixtureAttrs>();
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_mixture_density_backward(const NodeContext& context) {
  const MixtureSizes sizes = mixture_sizes(context.input(In::kY).shape);
  const auto attrs = context.attrs<MixtureAttrs>();
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference
