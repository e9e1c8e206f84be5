#include "studies/regression.h"

#include <lbfgs.h>

#include <algorithm>
#include <cmath>

#include "src/core/error.h"

namespace keel::study {
namespace {

using Eigen::Index;
using Map = Eigen::Map<RowMatrix>;
using ConstMap = Eigen::Map<const RowMatrix>;

// The mean of p (1 - p) over rows and classes is between 0 and 1/4. It decides how many steps are
// taken, and not where they lead.
constexpr double kBend = 0.25;

// The largest gradient by V that ends a fit, relative to |V|, and the one that is enough where the
// loss is the same to its last digit in all directions, so that no line search finds a lower one.
constexpr double kEpsilon = 1e-6, kRoundedEpsilon = 1e-5;

bool is_of_line_search(int code) {
  return code == LBFGSERR_ROUNDING_ERROR || code == LBFGSERR_MINIMUMSTEP ||
         code == LBFGSERR_MAXIMUMLINESEARCH;
}

// The columns of each fit but its last class.
RowMatrix without_last_class(const RowMatrix& columns, Index classes) {
  const Index fits = columns.cols() / classes, kept = classes - 1;
  RowMatrix result(columns.rows(), fits * kept);
  for (Index fit = 0; fit < fits; ++fit) {
    result.middleCols(fit * kept, kept) = columns.middleCols(fit * classes, kept);
  }
  return result;
}

// x W + b, less the number of a row's last class, which is 0 then: one product fewer.
RowMatrix relative_logits(const RowMatrix& x, const RowMatrix& weights, Index classes) {
  const Index fits = weights.cols() / classes, kept = classes - 1;
  RowMatrix relative = without_last_class(weights, classes);
  for (Index fit = 0; fit < fits; ++fit) {
    relative.middleCols(fit * kept, kept).colwise() -= weights.col(fit * classes + kept);
  }
  const RowMatrix products = x * relative.topRows(x.cols());
  RowMatrix logits = RowMatrix::Zero(x.rows(), fits * classes);
  for (Index fit = 0; fit < fits; ++fit) {
    logits.middleCols(fit * classes, kept) = products.middleCols(fit * kept, kept).rowwise() +
                                             relative.row(x.cols()).segment(fit * kept, kept);
  }
  return logits;
}

// The losses of all fits in one sum, and its gradient, as L-BFGS asks for them.
class SoftmaxLoss {
 public:
  SoftmaxLoss(const Examples& examples, const RowMatrix& seen, const Penalty& penalty)
      : examples_(examples), seen_(seen), penalty_(penalty) {}

  Index rows() const { return examples_.x.cols() + 1; }
  Index columns() const { return seen_.cols() * classes(); }

  static lbfgsfloatval_t evaluate(void* self, const lbfgsfloatval_t* v, lbfgsfloatval_t* gradient,
                                  int, lbfgsfloatval_t) {
    const auto& loss = *static_cast<SoftmaxLoss*>(self);
    RowMatrix weights = ConstMap(v, loss.rows(), loss.columns());
    loss.penalty_.to_weights(weights);
    Map by_v(gradient, loss.rows(), loss.columns());
    const double value = loss.at(weights, by_v);
    loss.penalty_.to_gradient(by_v);
    return value;
  }

 private:
  Index classes() const { return examples_.target.cols(); }

  double at(const RowMatrix& weights, Map gradient) const {
    RowMatrix d = softmax_of(examples_.x, weights, classes());
    double loss = 0;
    for (Index fit = 0; fit < seen_.cols(); ++fit) {
      auto p = d.middleCols(fit * classes(), classes());
      // A probability that underflows has a logarithm all the same.
      // Against evenly spread probabilities, for a sum that is small is rounded little, and where
      // features say next to nothing the last digits decide which way is down.
      const auto logs = (p.array() * double(classes())).max(1e-300).log();
      loss -= ((examples_.target.array() * logs).rowwise().sum() * seen_.col(fit).array()).sum();
      p -= examples_.target;
      p.array().colwise() *= seen_.col(fit).array();
    }
    put_gradient(d, gradient);
    const auto own = weights.topRows(rows() - 1);
    gradient.topRows(rows() - 1) += own / penalty_.strength();
    return loss + own.squaredNorm() / (2 * penalty_.strength());
  }

  // The gradient of the fit without the penalty. The gradients of a row's classes add up to 0,
  // because p - target does.
  void put_gradient(const RowMatrix& dlogits, Map gradient) const {
    const Index kept = classes() - 1;
    const RowMatrix d = without_last_class(dlogits, classes());
    const RowMatrix products = examples_.x.transpose() * d;
    for (Index fit = 0; fit < seen_.cols(); ++fit) {
      auto own = gradient.middleCols(fit * classes(), kept);
      own.topRows(rows() - 1) = products.middleCols(fit * kept, kept);
      own.bottomRows(1) = d.middleCols(fit * kept, kept).colwise().sum();
      gradient.col(fit * classes() + kept) = -own.rowwise().sum();
    }
  }

  const Examples& examples_;
  const RowMatrix& seen_;
  const Penalty& penalty_;
};

// As L-BFGS itself measures it.
double relative_gradient(SoftmaxLoss& loss, const RowMatrix& v) {
  RowMatrix gradient(v.rows(), v.cols());
  SoftmaxLoss::evaluate(&loss, v.data(), gradient.data(), int(v.size()), 0);
  return gradient.norm() / std::max(v.norm(), 1.0);
}

}  // namespace

Eigen::MatrixXd second_moments(const RowMatrix& x) {
  const Index features = x.cols();
  Eigen::MatrixXd moments = Eigen::MatrixXd::Zero(features + 1, features + 1);
  moments.topLeftCorner(features, features)
      .selfadjointView<Eigen::Lower>()
      .rankUpdate(x.transpose());
  moments.bottomLeftCorner(1, features) = x.colwise().sum();
  moments(features, features) = double(x.rows());
  return moments.selfadjointView<Eigen::Lower>();
}

Penalty::Penalty(const Eigen::MatrixXd& moments, double strength) : strength_(strength) {
  Eigen::MatrixXd bend = kBend * moments;
  bend.diagonal().head(bend.rows() - 1).array() += 1 / strength;
  bend_.compute(bend);
  check(bend_.info() == Eigen::Success, ErrorKind::kInternal,
        "softmax regression: moments of {} features are not those of any rows", moments.rows() - 1);
}

void Penalty::to_weights(Eigen::Ref<RowMatrix> v) const { bend_.matrixU().solveInPlace(v); }

void Penalty::from_weights(Eigen::Ref<RowMatrix> w) const { w = bend_.matrixU() * w; }

void Penalty::to_gradient(Eigen::Ref<RowMatrix> dw) const { bend_.matrixL().solveInPlace(dw); }

RowMatrix softmax_of(const RowMatrix& x, const RowMatrix& weights, Eigen::Index classes) {
  RowMatrix all = relative_logits(x, weights, classes);
  for (Index begin = 0; begin < all.cols(); begin += classes) {
    auto p = all.middleCols(begin, classes);
    p.colwise() -= p.rowwise().maxCoeff().eval();
    p = p.array().exp();
    p.array().colwise() /= p.rowwise().sum().eval().array();
  }
  return all;
}

RowMatrix fit_softmax(const Examples& examples, const RowMatrix& seen, const Penalty& penalty,
                      const RowMatrix& start) {
  SoftmaxLoss loss(examples, seen, penalty);
  RowMatrix v = start;
  if (v.size() == 0) v.setZero(loss.rows(), loss.columns());
  penalty.from_weights(v);
  lbfgs_parameter_t options;
  lbfgs_parameter_init(&options);
  options.epsilon = kEpsilon;
  const int code =
      lbfgs(int(v.size()), v.data(), nullptr, &SoftmaxLoss::evaluate, nullptr, &loss, &options);
  const bool found = code == LBFGS_SUCCESS || code == LBFGS_CONVERGENCE || code == LBFGS_STOP ||
                     code == LBFGS_ALREADY_MINIMIZED;
  check(found || (is_of_line_search(code) && relative_gradient(loss, v) <= kRoundedEpsilon),
        ErrorKind::kInternal, "softmax regression of {} rows: L-BFGS ended with {}",
        examples.x.rows(), code);
  penalty.to_weights(v);
  return v;
}

RowMatrix fit_softmax(const Examples& examples, double strength, const RowMatrix& start) {
  return fit_softmax(examples, RowMatrix::Ones(examples.x.rows(), 1),
                     Penalty(second_moments(examples.x), strength), start);
}

}  // namespace keel::study
