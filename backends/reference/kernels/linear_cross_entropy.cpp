// Cross entropy of products with the rows of a table: the logits of one row at a time.
#include "src/ops/linear_cross_entropy.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/core/bf16.h"
#include "src/runtime/loss_step.h"

namespace keel::reference {
namespace {

using In = LinearLossInput;

struct LinearLossOf {
  const Binding& b;
  LinearLossAttrs attrs;
  bool is_narrow;  // factors are bf16

  Matrix two(const TensorRef& t) const { return matrix(t, t.type.shape[0], t.type.shape[1]); }
  Matrix in(int place) const { return two(b.inputs[std::size_t(place)]); }
  std::int64_t rows() const { return b.inputs[In::kX].type.shape[0]; }
  std::int64_t vocabulary() const { return b.inputs[In::kTable].type.shape[0]; }
  std::int64_t label(std::int64_t row) const {
    return b.inputs[In::kLabels].as<std::int32_t>()[row];
  }
  std::int64_t hot(const LossPart& part, std::int64_t row) const {
    return class_of(attrs, part, label(row), vocabulary());
  }

  // The logits of a row in a part: those of its words, then those of the clusters.
  Eigen::VectorXd logits(const LossPart& part, std::int64_t row) const {
    const Eigen::VectorXd x = in(In::kX).row(row);
    Eigen::VectorXd z(part.classes());
    z.head(part.words()) = in(In::kTable).middleRows(part.first, part.words()) * x;
    if (part.clusters > 0) z.tail(part.clusters) = in(In::kClusters)*x;
    if (b.inputs[In::kBias]) {
      z.head(part.words()) += vector(b.inputs[In::kBias]).segment(part.first, part.words());
      if (part.clusters > 0) z.tail(part.clusters) += vector(b.inputs[In::kClusterBias]);
    }
    return z;
  }
};

double log_sum_exp_of(const Eigen::VectorXd& z) {
  const double largest = z.maxCoeff();
  return largest + std::log((z.array() - largest).exp().sum());
}

void forward(const LinearLossOf& of) {
  using Out = LinearLossOutput;
  Matrix lse = of.two(of.b.outputs[Out::kLse]);
  lse.setZero();
  double sum = 0, nll = 0;
  const double s = of.attrs.label_smoothing;
  const std::vector<LossPart> parts = loss_parts(of.attrs, of.vocabulary());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::int64_t row = 0; row < of.rows(); ++row) {
      if (!parts[p].takes(of.label(row))) continue;
      const Eigen::VectorXd z = of.logits(parts[p], row);
      const double own = log_sum_exp_of(z);
      lse(std::int64_t(p), row) = own;
      const std::int64_t hot = of.hot(parts[p], row);
      const double surprise = hot < 0 ? NAN : own - z[hot];
      nll += surprise;
      sum += (1 - s) * surprise;
      if (s > 0) sum += s * (own - z.mean());
    }
  }
  *of.b.outputs[Out::kSum].as<double>() = sum;
  *of.b.outputs[Out::kNll].as<double>() = nll;
}

// Adds what one row of a part gives, P being its gradient by the logits.
void add_row(const LinearLossOf& of, const LossPart& part, std::int64_t row,
             const Eigen::VectorXd& p) {
  using Out = LinearLossGradient;
  const auto out = [&](int place) { return of.two(of.b.outputs[std::size_t(place)]); };
  const Eigen::VectorXd factor = of.is_narrow ? p.unaryExpr(&rounded_to_bf16) : p;
  const auto words = factor.head(part.words()), clusters = factor.tail(part.clusters);
  const Matrix x = of.in(In::kX), table = of.in(In::kTable);
  Matrix dx = out(Out::kDx), dtable = out(Out::kDtable);
  dx.row(row) += words.transpose() * table.middleRows(part.first, part.words());
  dtable.middleRows(part.first, part.words()) += words * x.row(row);
  const bool has_bias = bool(of.b.inputs[In::kBias]);
  if (has_bias) {
    vector(of.b.outputs[Out::kDbias]).segment(part.first, part.words()) += p.head(part.words());
  }
  if (part.clusters == 0) return;
  dx.row(row) += clusters.transpose() * of.in(In::kClusters);
  Matrix dclusters = out(Out::kDclusters);
  dclusters += clusters * x.row(row);
  if (has_bias) vector(of.b.outputs[Out::kDclusterBias]) += p.tail(part.clusters);
}

void backward(const LinearLossOf& of) {
  for (const TensorRef& output : of.b.outputs) {
    if (output) vector(output).setZero();
  }
  const Matrix lse = of.two(of.b.inputs[In::kLse]);
  const double dsum = *of.b.inputs[In::kDsum].as<double>(), s = of.attrs.label_smoothing;
  const std::vector<LossPart> parts = loss_parts(of.attrs, of.vocabulary());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::int64_t row = 0; row < of.rows(); ++row) {
      if (!parts[p].takes(of.label(row))) continue;
      Eigen::VectorXd gradient =
          (of.logits(parts[p], row).array() - lse(std::int64_t(p), row)).exp() -
          s / double(parts[p].classes());
      const std::int64_t hot = of.hot(parts[p], row);
      if (hot >= 0) gradient[hot] -= 1 - s;
      add_row(of, parts[p], row, dsum * gradient);
    }
  }
}

auto made_of(const NodeContext& context) {
  return [attrs = context.attrs<LinearLossAttrs>(),
          is_narrow = context.input(In::kX).dtype == DType::kBF16](const Binding& b) {
    return LinearLossOf{b, attrs, is_narrow};
  };
}

}  // namespace

Prepared prepare_linear_cross_entropy(const NodeContext& context) {
  return kernel_of([make = made_of(context)](const Binding& b) { forward(make(b)); });
}
Prepared prepare_linear_cross_entropy_backward(const NodeContext& context) {
  return kernel_of([make = made_of(context)](const Binding& b) { backward(make(b)); });
}
Prepared prepare_linear_cross_entropy_step(const NodeContext& context) {
  return one_after_the_other(prepare_linear_cross_entropy(context),
                             prepare_linear_cross_entropy_backward(context));
}

}  // namespace keel::reference
