// Multi-linear attention: one sequence after the other, position by position.
#include "src/ops/multilinear_attention.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = MultilinearInput;

// A sequence of the batch.
struct Sequence {
  const Binding& b;
  MultilinearSizes sizes;
  bool causal;
  std::int64_t row;

  // This sequence's (positions, rank or features) of a tensor with a batch.
  Matrix of(const TensorRef& t) const {
    const std::int64_t columns = t.type.shape[2];
    return {t.as<double>() + row * sizes.positions * columns, sizes.positions, columns};
  }
  Matrix in(int place) const { return of(b.inputs[std::size_t(place)]); }
  Matrix p() const { return matrix(b.inputs[In::kP], sizes.positions, sizes.rank); }
  Matrix out() const { return matrix(b.inputs[In::kOut], sizes.pairs(), sizes.features); }

  // Query i meets the first so many keys and values.
  std::int64_t seen(std::int64_t i) const { return causal ? i + 1 : sizes.positions; }
  // H_jr = a_ir k_jr + c_ir p_jr
  Eigen::MatrixXd meet(std::int64_t i) const {
    return in(In::kK)*in(In::kA).row(i).asDiagonal() +
           Eigen::MatrixXd(p() * in(In::kC).row(i).asDiagonal());
  }
};

// y_i = sum over j, k of T_jk out_{j n + k}, T = H v^T
void forward(const Sequence& s) {
  const Matrix out = s.out();
  Matrix y = s.of(s.b.outputs[0]);
  y.setZero();
  for (std::int64_t i = 0; i < s.sizes.positions; ++i) {
    const Eigen::MatrixXd t = s.meet(i) * s.in(In::kV).transpose();
    for (std::int64_t j = 0; j < s.seen(i); ++j) {
      for (std::int64_t k = 0; k < s.seen(i); ++k) {
        y.row(i) += t(j, k) * out.row(j * s.sizes.positions + k);
      }
    }
  }
}

// G_jk of query i; 0 where T is masked.
Eigen::MatrixXd gradient_of_t(const Sequence& s, std::int64_t i) {
  const std::int64_t n = s.sizes.positions;
  const Matrix out = s.out(), dy = s.in(In::kDy);
  Eigen::MatrixXd g = Eigen::MatrixXd::Zero(n, n);
  for (std::int64_t j = 0; j < s.seen(i); ++j) {
    for (std::int64_t k = 0; k < s.seen(i); ++k) g(j, k) = out.row(j * n + k).dot(dy.row(i));
  }
  return g;
}

// Adds to dp and dout, which are sums over all sequences.
void backward(const Sequence& s) {
  using Out = MultilinearGradient;
  const std::int64_t n = s.sizes.positions;
  const Matrix a = s.in(In::kA), c = s.in(In::kC), k = s.in(In::kK), v = s.in(In::kV);
  const Matrix dy = s.in(In::kDy);
  const auto gradient = [&](int place) { return s.of(s.b.outputs[std::size_t(place)]); };
  Matrix da = gradient(Out::kDa), dc = gradient(Out::kDc);
  Matrix dk = gradient(Out::kDk), dv = gradient(Out::kDv);
  Matrix dp = matrix(s.b.outputs[Out::kDp], n, s.sizes.rank);
  Matrix dout = matrix(s.b.outputs[Out::kDout], s.sizes.pairs(), s.sizes.features);
  dk.setZero(), dv.setZero();
  for (std::int64_t i = 0; i < n; ++i) {
    const Eigen::MatrixXd h = s.meet(i), g = gradient_of_t(s, i), m = g * v;
    da.row(i) = m.cwiseProduct(k).colwise().sum();
    dc.row(i) = m.cwiseProduct(s.p()).colwise().sum();
    dk += m * a.row(i).asDiagonal();
    dp += m * c.row(i).asDiagonal();
    dv += g.transpose() * h;
    const Eigen::MatrixXd t = h * v.transpose();
    for (std::int64_t j = 0; j < s.seen(i); ++j) {
      for (std::int64_t of = 0; of < s.seen(i); ++of) dout.row(j * n + of) += t(j, of) * dy.row(i);
    }
  }
}

Prepared prepare(const NodeContext& context, void (*run)(const Sequence&)) {
  const MultilinearSizes sizes =
      multilinear_sizes(context.input(In::kA).shape, context.input(In::kOut).shape);
  const bool causal = context.attrs<MultilinearAttrs>().causal;
  return kernel_of([=](const Binding& b) {
    using Out = MultilinearGradient;
    if (b.outputs.size() > 1) {
      vector(b.outputs[Out::kDp]).setZero();
      vector(b.outputs[Out::kDout]).setZero();
    }
    for (std::int64_t row = 0; row < sizes.batch; ++row) run({b, sizes, causal, row});
  });
}

}  // namespace

Prepared prepare_multilinear_attention(const NodeContext& context) {
  return prepare(context, forward);
}
Prepared prepare_multilinear_attention_backward(const NodeContext& context) {
  return prepare(context, backward);
}

}  // namespace keel::reference
