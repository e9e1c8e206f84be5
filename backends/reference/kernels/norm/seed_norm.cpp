// Reference SeeDNorm, row by row.
#include "src/ops/norm/seed_norm.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = SeedNormInput;
using Out = SeedNormOutput;
using BackIn = SeedNormBackwardInput;
using BackOut = SeedNormGradient;
using Row = Eigen::RowVectorXd;

// The parameters along a row; forward and backward have them in the same places.
struct Parameters {
  Row gain, a, b;

  Parameters(const Binding& binding, const RowSizes& sizes)
      : gain(Row::Ones(sizes.width)),
        a(vector(binding.inputs[In::kA])),
        b(vector(binding.inputs[In::kB])) {
    if (binding.inputs[In::kGain]) gain = vector(binding.inputs[In::kGain]);
  }
  Row weights(double score) const { return std::tanh(score) * a + gain; }
};

// y = xhat * w. x, y (rows, width); rstd, score (rows).
void forward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector rstd = vector(b.outputs[Out::kRstd]), score = vector(b.outputs[Out::kScore]);
  const Parameters of(b, sizes);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    rstd[row] = 1 / std::sqrt(x.row(row).squaredNorm() / double(sizes.width) + eps);
    score[row] = x.row(row).dot(of.b);
    y.row(row) = (x.row(row) * rstd[row]).cwiseProduct(of.weights(score[row]));
  }
}

// dx = rstd * (g - xhat * mean(g * xhat)) + dscore * b, g = dy * w.
void backward(const Binding& b, const RowSizes& sizes) {
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector rstd = vector(b.inputs[BackIn::kRstd]), score = vector(b.inputs[BackIn::kScore]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  const Parameters of(b, sizes);
  Row dgain = Row::Zero(sizes.width), da = dgain, db = dgain;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Row xhat = x.row(row) * rstd[row], products = dy.row(row).cwiseProduct(xhat);
    const Row g = dy.row(row).cwiseProduct(of.weights(score[row]));
    const double cosh = std::cosh(score[row]), dscore = products.dot(of.a) / (cosh * cosh);
    dgain += products;
    da += std::tanh(score[row]) * products;
    db += dscore * x.row(row);
    dx.row(row) = rstd[row] * (g - xhat * (g.dot(xhat) / double(sizes.width))) + dscore * of.b;
  }
  if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain]) = dgain;
  vector(b.outputs[BackOut::kDa]) = da;
  vector(b.outputs[BackOut::kDb]) = db;
}

}  // namespace

Prepared prepare_seed_norm(const NodeContext& context) {
  const auto attrs = context.attrs<SeedNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.eps); });
}

Prepared prepare_seed_norm_backward(const NodeContext& context) {
  const RowSizes sizes =
      row_sizes(context.input(BackIn::kX).shape, context.attrs<SeedNormAttrs>().axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference
