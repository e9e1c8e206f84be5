#include "studies/regression.h"

#include <lbfgs.h>

#include <cmath>

#include "src/core/error.h"

namespace keel::study {
namespace {

using Map = Eigen::Map<RowMatrix>;
using ConstMap = Eigen::Map<const RowMatrix>;

// The loss and its gradient, as L-BFGS asks for them.
class SoftmaxLoss {
 public:
  SoftmaxLoss(const Examples& examples, double strength)
      : examples_(examples), strength_(strength) {}

  Eigen::Index features() const { return examples_.x.cols(); }
  Eigen::Index classes() const { return examples_.target.cols(); }

  static lbfgsfloatval_t evaluate(void* self, const lbfgsfloatval_t* w, lbfgsfloatval_t* gradient,
                                  int, lbfgsfloatval_t) {
    const auto& loss = *static_cast<SoftmaxLoss*>(self);
    const Eigen::Index rows = loss.features() + 1, columns = loss.classes();
    return loss.at(ConstMap(w, rows, columns), Map(gradient, rows, columns));
  }

 private:
  double at(const ConstMap& weights, Map gradient) const {
    const RowMatrix p = softmax_of(examples_.x, weights);
    const RowMatrix dlogits = p - examples_.target;
    const auto own = weights.topRows(features());
    gradient.topRows(features()) = examples_.x.transpose() * dlogits + own / strength_;
    gradient.bottomRows(1) = dlogits.colwise().sum();
    // A probability that underflows has a logarithm all the same.
    const double fit = -(examples_.target.array() * p.array().max(1e-300).log()).sum();
    return fit + own.squaredNorm() / (2 * strength_);
  }

  const Examples& examples_;
  double strength_;
};

}  // namespace

RowMatrix softmax_of(const RowMatrix& x, const RowMatrix& weights) {
  RowMatrix p = x * weights.topRows(x.cols());
  p.rowwise() += weights.row(x.cols());
  p.colwise() -= p.rowwise().maxCoeff().eval();
  p = p.array().exp();
  p.array().colwise() /= p.rowwise().sum().eval().array();
  return p;
}

RowMatrix fit_softmax(const Examples& examples, double strength, const RowMatrix& start) {
  SoftmaxLoss loss(examples, strength);
  RowMatrix weights = start;
  if (weights.size() == 0) weights.setZero(loss.features() + 1, loss.classes());
  lbfgs_parameter_t options;
  lbfgs_parameter_init(&options);
  options.epsilon = 1e-5;
  const int code = lbfgs(int(weights.size()), weights.data(), nullptr, &SoftmaxLoss::evaluate,
                         nullptr, &loss, &options);
  const bool found = code == LBFGS_SUCCESS || code == LBFGS_CONVERGENCE || code == LBFGS_STOP ||
                     code == LBFGS_ALREADY_MINIMIZED;
  check(found, ErrorKind::kInternal, "softmax regression of {} rows: L-BFGS ended with {}",
        examples.x.rows(), code);
  return weights;
}

}  // namespace keel::study
