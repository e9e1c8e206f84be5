// The soft window of handwriting synthesis, row by row.
#include "src/ops/attention_window.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = AttentionWindowInput;

// alpha_k, beta_k and the step of kappa_k of a row.
struct Bumps {
  Matrix components;
  std::int64_t count;

  double alpha(std::int64_t row, std::int64_t k) const { return std::exp(components(row, k)); }
  double beta(std::int64_t row, std::int64_t k) const {
    return std::exp(components(row, count + k));
  }
  double step(std::int64_t row, std::int64_t k) const {
    return std::exp(components(row, 2 * count + k));
  }
};

Bumps bumps_of(const Binding& b, const AttentionWindowSizes& sizes) {
  return {matrix(b.inputs[In::kComponents], sizes.rows, 3 * sizes.bumps), sizes.bumps};
}

// The distance of symbol u = 0, 1, ..., whose place is u + 1.
double distance(double kappa, std::int64_t u) { return kappa - double(u + 1); }

void forward(const Binding& b, const AttentionWindowSizes& sizes, std::int64_t symbols) {
  using Out = AttentionWindowOutput;
  const Bumps bumps = bumps_of(b, sizes);
  const Matrix before = matrix(b.inputs[In::kBefore], sizes.rows, sizes.bumps);
  const std::int32_t* text = b.inputs[In::kText].as<std::int32_t>();
  Matrix w = matrix(b.outputs[Out::kW], sizes.rows, symbols);
  Matrix kappa = matrix(b.outputs[Out::kKappa], sizes.rows, sizes.bumps);
  Matrix phi = matrix(b.outputs[Out::kPhi], sizes.rows, sizes.length);
  w.setZero();
  phi.setZero();
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    for (std::int64_t k = 0; k < sizes.bumps; ++k)
      kappa(row, k) = before(row, k) + bumps.step(row, k);
    for (std::int64_t u = 0; u < sizes.length; ++u) {
      const std::int32_t symbol = text[row * sizes.length + u];
      if (symbol < 0) continue;
      for (std::int64_t k = 0; k < sizes.bumps; ++k) {
        const double d = distance(kappa(row, k), u);
        phi(row, u) += bumps.alpha(row, k) * std::exp(-bumps.beta(row, k) * d * d);
      }
      if (symbol >= symbols) {
        w.row(row).setConstant(NAN);
      } else {
        w(row, symbol) += phi(row, u);
      }
    }
  }
}

// The gradient of phi_u: dw of its symbol and dphi.
double phi_gradient(const Binding& b, std::int64_t place, std::int64_t row, std::int64_t symbols) {
  const std::int32_t symbol = b.inputs[In::kText].as<std::int32_t>()[place];
  if (symbol < 0) return 0;
  if (symbol >= symbols) return NAN;
  const TensorRef &dw = b.inputs[In::kDw], &dphi = b.inputs[In::kDphi];
  return (dw ? dw.as<double>()[row * symbols + symbol] : 0) + (dphi ? dphi.as<double>()[place] : 0);
}

void backward(const Binding& b, const AttentionWindowSizes& sizes, std::int64_t symbols) {
  using Out = AttentionWindowGradient;
  const Bumps bumps = bumps_of(b, sizes);
  const Matrix kappa = matrix(b.inputs[In::kKappa], sizes.rows, sizes.bumps);
  const TensorRef& dkappa = b.inputs[In::kDkappa];
  Matrix dcomponents = matrix(b.outputs[Out::kDcomponents], sizes.rows, 3 * sizes.bumps);
  Matrix dbefore = matrix(b.outputs[Out::kDbefore], sizes.rows, sizes.bumps);
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    for (std::int64_t k = 0; k < sizes.bumps; ++k) {
      const double alpha = bumps.alpha(row, k), beta = bumps.beta(row, k);
      double sum = 0, sum_d = 0, sum_d2 = 0;
      for (std::int64_t u = 0; u < sizes.length; ++u) {
        const double d = distance(kappa(row, k), u);
        const double g = phi_gradient(b, row * sizes.length + u, row, symbols);
        const double of_bump = g * std::exp(-beta * d * d);
        sum += of_bump;
        sum_d += of_bump * d;
        sum_d2 += of_bump * d * d;
      }
      const double direct = dkappa ? dkappa.as<double>()[row * sizes.bumps + k] : 0;
      dbefore(row, k) = direct - 2 * alpha * beta * sum_d;
      dcomponents(row, k) = alpha * sum;
      dcomponents(row, sizes.bumps + k) = -alpha * beta * sum_d2;
      dcomponents(row, 2 * sizes.bumps + k) = bumps.step(row, k) * dbefore(row, k);
    }
  }
}

AttentionWindowSizes sizes_of(const NodeContext& context) {
  return attention_window_sizes(context.input(In::kBefore).shape, context.input(In::kText).shape);
}

}  // namespace

Prepared prepare_attention_window(const NodeContext& context) {
  const std::int64_t symbols = context.attrs<AttentionWindowAttrs>().symbols;
  return kernel_of(
      [sizes = sizes_of(context), symbols](const Binding& b) { forward(b, sizes, symbols); });
}

Prepared prepare_attention_window_backward(const NodeContext& context) {
  const std::int64_t symbols = context.attrs<AttentionWindowAttrs>().symbols;
  return kernel_of(
      [sizes = sizes_of(context), symbols](const Binding& b) { backward(b, sizes, symbols); });
}

}  // namespace keel::reference
