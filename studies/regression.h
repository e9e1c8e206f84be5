// Softmax regression, to its optimum.
#pragma once

#include <Eigen/Core>

namespace keel::study {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// x (rows, features) and, for each row, the probabilities of the classes that it should have,
// (rows, classes): 1 for its class, or several that add up to 1.
struct Examples {
  RowMatrix x, target;
};

// W (features + 1, classes), the last row being biases, that minimizes
//     - sum over rows, classes of target log softmax(x W + b)  +  |W without b|^2 / (2 strength),
// which is convex: the minimum is found by L-BFGS from `start` on (empty: 0) until its gradient is
// below 1e-5 of |W|. With two classes this is logistic regression of a strength C = 2 `strength`,
// for their weights share the penalty. Throws Error{kInternal} when L-BFGS finds no minimum.
RowMatrix fit_softmax(const Examples& examples, double strength, const RowMatrix& start = {});

// The probabilities (rows, classes) that W gives rows x.
RowMatrix softmax_of(const RowMatrix& x, const RowMatrix& weights);

}  // namespace keel::study
