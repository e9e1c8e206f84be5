// Matrix products, one of the batch after the other.
#include "src/ops/matmul.h"

#include "backends/reference/kernels/kernels.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

using In = MatmulInput;

// The (rows, cols) matrix that is stored at `data`, there transposed if so told.
Eigen::MatrixXd stored_at(double* data, std::int64_t rows, std::int64_t cols, bool transposed) {
  if (transposed) return Matrix(data, cols, rows).transpose();
  return Matrix(data, rows, cols);
}

// The (rows, cols) matrix whose panels of columns are `panels`.
Eigen::MatrixXd joined(const TensorRef& panels, std::int64_t rows, std::int64_t cols) {
  const std::int64_t stored_rows = panels.type.shape[1], width = panels.type.shape[2];
  Eigen::MatrixXd matrix(rows, cols);
  for (std::int64_t first = 0; first < cols; first += width) {
    const std::int64_t here = std::min(width, cols - first);
    matrix.middleCols(first, here) =
        Matrix(panels.as<double>() + first * stored_rows, stored_rows, width)
            .topLeftCorner(rows, here);
  }
  return matrix;
}

// y = act(op(a) op(b) + bias). a (batch, m, k), b (batch, k, n) or (k, n), y (batch, m, n).
void forward(const Binding& b, const MatmulSizes& sizes, const MatmulAttrs& attrs) {
  const auto [batch, m, k, n, shared_b] = sizes;
  for (std::int64_t i = 0; i < batch; ++i) {
    double* left = b.inputs[In::kA].as<double>() + i * m * k;
    double* right = b.inputs[In::kB].as<double>() + (shared_b ? 0 : i * k * n);
    Matrix y(b.outputs[0].as<double>() + i * m * n, m, n);
    y = stored_at(left, m, k, attrs.transpose_a) *
        (attrs.packed_columns > 0 ? joined(b.inputs[In::kB], k, n)
                                  : stored_at(right, k, n, attrs.transpose_b));
    if (b.inputs[In::kBias]) y.rowwise() += vector(b.inputs[In::kBias]).transpose();
    if (attrs.activation == Activation::kRelu) {
      y = y.unaryExpr([](double value) { return evaluate(EwCode::kRelu, {value}, {}); });
    }
  }
}

}  // namespace

Prepared prepare_matmul(const NodeContext& context) {
  const auto attrs = context.attrs<MatmulAttrs>();
  const MatmulSizes sizes =
      matmul_sizes(context.input(In::kA).shape, context.input(In::kB).shape, attrs);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

}  // namespace keel::reference
