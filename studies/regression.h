// Softmax regression, solved to its optimum.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace keel::study {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// x (rows, features) and the target probabilities of the classes for each row, (rows, classes): 1
// for its class, or several that add up to 1.
struct Examples {
  RowMatrix x, target;
};

// The matrix (features + 1, features + 1) of products of features, and of a 1 after them, summed
// over rows x.
Eigen::MatrixXd second_moments(const RowMatrix& x);

// The penalty on weights, and the variables V of the search: V = L' W, where L L' is about the
// curvature of the loss. In V the curvature is about equal in all directions, so that some ten
// steps do the work of a thousand in W; the optimum is the same.
class Penalty {
 public:
  // `moments` are those of the rows, or of similar rows. `strength` must be above 0.
  Penalty(const Eigen::MatrixXd& moments, double strength);

  double strength() const { return strength_; }
  void to_weights(Eigen::Ref<RowMatrix> v) const;    // W of V, in place
  void from_weights(Eigen::Ref<RowMatrix> w) const;  // V of W
  void to_gradient(Eigen::Ref<RowMatrix> dw) const;  // the gradient by V of that by W

 private:
  double strength_;
  Eigen::LLT<Eigen::MatrixXd> bend_;
};

// Several regressions at once, each of which sees some of the rows: `seen` (rows, fits) is 1 or 0.
// W (features + 1, fits * classes), the columns of a fit side by side, the last row being biases,
// minimizes, for each fit,
//     - sum over its rows, classes of target log softmax(x W + b)
//     + |W without b|^2 / (2 strength),
// which is convex. L-BFGS finds the minimum from `start` on (empty: 0), until the gradient by V is
// below 1e-6 of |V|, or 1e-5 where rounding hides smaller ones; that is about the distance to the
// optimum. With two classes this is logistic regression of strength C = 2 `strength`, because their
// weights share the penalty. Throws Error{kInternal} if L-BFGS finds no minimum.
RowMatrix fit_softmax(const Examples& examples, const RowMatrix& seen, const Penalty& penalty,
                      const RowMatrix& start = {});
// A single regression that sees all rows.
RowMatrix fit_softmax(const Examples& examples, double strength, const RowMatrix& start = {});

// The probabilities (rows, fits * classes) that W gives rows x.
RowMatrix softmax_of(const RowMatrix& x, const RowMatrix& weights, Eigen::Index classes);

}  // namespace keel::study
