// Cross entropy and the count of wrong classifications. The terms of rows are stored in the
// workspace and then summed in double.
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/loss.cuh"
#include "backends/cuda/kernels/norm/row.cuh"
#include "backends/cuda/kernels/reduction.cuh"
#include "src/ops/loss.h"

namespace keel::cuda {
namespace {

using In = CrossEntropyInput;
using Out = CrossEntropyOutput;

// Sums of terms, and how many there are.
struct Total {
  double sum, count;
  Total() = default;
  __device__ Total(double sum, double count = 0) : sum(sum), count(count) {}
};
struct AddTotals {
  static constexpr double kNeutral = 0;
  __device__ Total operator()(const Total& a, const Total& b) const {
    return {a.sum + b.sum, a.count + b.count};
  }
};

// The rows of a classification op.
struct Rows {
  std::int64_t rows, classes, ignore_index;
  double smoothing;

  __device__ RowSizes sizes() const { return {rows, classes}; }
  __device__ bool counts(std::int32_t label) const { return label != ignore_index; }
  __device__ bool is_class(std::int32_t label) const { return label >= 0 && label < classes; }
};

struct CrossEntropy {
  Global<const float> logits;
  Global<const std::int32_t> labels;
  Global<float> log_sum_exp;
  Global<double> losses;  // of each row
};

// (1 - s) * -log p[label] + s * mean_k(-log p[k])
template <class R>
__global__ void __launch_bounds__(R::kBlock) cross_entropy_rows(Rows op, CrossEntropy a) {
  if (R::is_idle(op.rows)) return;
  const R row({a.logits}, op.sizes());
  const float max = row.over(Largest(), [](std::int64_t, float x) { return x; });
  const double sum = row.sum([=](std::int64_t, float x) { return double(exponential(x - max)); });
  // A class of probability 0 has infinite surprise; it must not matter without smoothing.
  double mean = 0;
  if (op.smoothing > 0) {
    mean = row.sum([](std::int64_t, float x) { return double(x); }) / double(op.classes);
  }
  if (!row.is_first()) return;
  const std::int64_t r = row.index();
  const double log_sum_exp = max + log(sum), s = op.smoothing;
  const std::int32_t label = a.labels[r];
  double loss = op.counts(label) ? NAN : 0;
  if (op.counts(label) && op.is_class(label)) {
    loss = (1 - s) * (log_sum_exp - a.logits[r * op.classes + label]);
    if (s > 0) loss += s * (log_sum_exp - mean);
  }
  a.log_sum_exp[r] = float(log_sum_exp);
  a.losses[r] = loss;
}

struct RowTerms {
  using Value = Total;
  Rows op;
  Global<const std::int32_t> labels;
  Global<const double> losses;
  __device__ Total operator()(std::int64_t, std::int64_t r) const {
    return {losses[r], op.counts(labels[r]) ? 1.0 : 0.0};
  }
};

struct StoreLoss {
  Global<float> mean, sum, count;
  __device__ void operator()(std::int64_t, const Total& total) const {
    mean[0] = total.count > 0 ? float(total.sum / total.count) : 0;
    sum[0] = float(total.sum);
    count[0] = float(total.count);
  }
};

struct CrossEntropyBackward {
  Global<const float> logits;
  Global<const std::int32_t> labels;
  Global<const float> log_sum_exp, count;
  TermGradient gradient;
  Global<float> dlogits;
};

// dlogits = gradient * (softmax - (1 - s) onehot - s / K), 0 where ignored.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    cross_entropy_backward(Rows op, CrossEntropyBackward a) {
  if (R::is_idle(op.rows)) return;
  const R row({a.logits}, op.sizes());
  const float gradient = a.gradient(a.count[0]), log_sum_exp = a.log_sum_exp[row.index()];
  const float share = float(op.smoothing / double(op.classes));
  const float own = float((1 - op.smoothing) * gradient);
  const std::int32_t label = a.labels[row.index()];
  const bool counts = op.counts(label);
  row.store(a.dlogits, [=](std::int64_t column, float x) {
    const float d = gradient * (exponential(x - log_sum_exp) - share);
    return !counts ? 0 : column == label ? d - own : d;
  });
}

// 1 for a row whose first largest logit is not at the label; a NaN is nowhere.
template <class R>
__global__ void __launch_bounds__(R::kBlock)
    wrong_rows(Rows op, Global<const float> logits, Global<const std::int32_t> labels,
               Global<double> wrong) {
  if (R::is_idle(op.rows)) return;
  const R row({logits}, op.sizes());
  const float max = row.over(Largest(), [](std::int64_t, float x) { return x; });
  const std::int64_t guess = row.over(Smallest(), [=](std::int64_t column, float x) {
    if (x != x) return std::int64_t{-1};
    return x == max ? column : Smallest::kNeutral;
  });
  if (!row.is_first()) return;
  const std::int32_t label = labels[row.index()];
  wrong[row.index()] = op.counts(label) && guess != label ? 1 : 0;
}

Rows rows_of(const NodeContext& context) {
  const Shape& logits = context.input(In::kLogits).shape;
  const auto& attrs = context.attrs<CrossEntropyAttrs>();
  return {logits[0], logits[1], attrs.ignore_index, attrs.label_smoothing};
}

void run_cross_entropy(const Binding& b, const Rows& op, const Reduction& r) {
  const auto labels = global<const std::int32_t>(b.inputs[In::kLabels]);
  const auto losses = workspace<double>(b, op.rows);
  const CrossEntropy args{input(b.inputs[In::kLogits]), labels, output(b.outputs[Out::kLogSumExp]),
                          losses};
  with_row<1>(op.classes, [&]<class R>(std::type_identity<R> row) {
    launch(cross_entropy_rows<R>, grid_of_rows(row, op.rows), op, args);
  });
  reduce<AddTotals>(r, RowTerms{op, labels, losses}, losses.data() + op.rows,
                    StoreLoss{output(b.outputs[Out::kMean]), output(b.outputs[Out::kSum]),
                              output(b.outputs[Out::kCount])});
}

void run_cross_entropy_backward(const Binding& b, const Rows& op) {
  const CrossEntropyBackward args{input(b.inputs[In::kLogits]),
                                  global<const std::int32_t>(b.inputs[In::kLabels]),
                                  input(b.inputs[In::kLogSumExp]),
                                  input(b.inputs[In::kCount]),
                                  {input(b.inputs[In::kDmean]), input(b.inputs[In::kDsum])},
                                  output(b.outputs[0])};
  with_row<1>(op.classes, [&]<class R>(std::type_identity<R> row) {
    launch(cross_entropy_backward<R>, grid_of_rows(row, op.rows), op, args);
  });
}

void run_errors(const Binding& b, const Rows& op, const Reduction& r) {
  const auto labels = global<const std::int32_t>(b.inputs[In::kLabels]);
  const auto wrong = workspace<double>(b, op.rows);
  with_row<1>(op.classes, [&]<class R>(std::type_identity<R> row) {
    launch(wrong_rows<R>, grid_of_rows(row, op.rows), op, input(b.inputs[In::kLogits]), labels,
           wrong);
  });
  reduce<Add>(r, Elements<double>{wrong}, wrong.data() + op.rows,
              StoreQuotient{output(b.outputs[0])});
}

}  // namespace

Prepared prepare_cross_entropy(const NodeContext& context) {
  const Rows op = rows_of(context);
  const Reduction r = reduction_of_all(op.rows);
  return kernel_of([=](const Binding& b) { run_cross_entropy(b, op, r); },
                   op.rows * 8 + partial_bytes<Total>(r));
}

Prepared prepare_cross_entropy_backward(const NodeContext& context) {
  const Rows op = rows_of(context);
  return kernel_of([op](const Binding& b) { run_cross_entropy_backward(b, op); });
}

Prepared prepare_classification_errors(const NodeContext& context) {
  const Rows op = rows_of(context);
  const Reduction r = reduction_of_all(op.rows);
  return kernel_of([=](const Binding& b) { run_errors(b, op, r); },
                   op.rows * 8 + partial_bytes<double>(r));
}

}  // namespace keel::cuda
