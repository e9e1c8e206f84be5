// Losses on logits and the count of wrong classifications. Totals are kept in double, one for each
// block of fixed size, and added in block order.
#include "src/ops/loss.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/loss_kernels.h"
#include "backends/onednn/kernels/reduce_kernels.h"

namespace keel::onednn {
namespace {

using In = CrossEntropyInput;
using Bce = BceInput;

// Blocks of rows, each with a total and a count in the workspace.
struct Blocks {
  std::int64_t rows, block;

  static Blocks of(std::int64_t rows, std::int64_t width) {
    return {rows, std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(width, 1))};
  }
  std::int64_t count() const { return (rows + block - 1) / block; }
};

struct Total {
  double sum = 0, count = 0;
};

// Runs add(row or range begin, end) -> Total on every block, and adds the totals up in order.
template <class Add>
Total total_of(const Blocks& blocks, void* workspace, const Add& add) {
  Total* totals = static_cast<Total*>(workspace);
  parallel_range(blocks.rows, blocks.block, [&](std::int64_t begin, std::int64_t end) {
    totals[begin / blocks.block] = add(begin, end);
  });
  Total all;
  for (std::int64_t i = 0; i < blocks.count(); ++i) {
    all.sum += totals[i].sum;
    all.count += totals[i].count;
  }
  return all;
}

std::int64_t workspace_of(const Blocks& blocks) {
  return blocks.count() * std::int64_t(sizeof(Total));
}

float& scalar(const TensorRef& t) { return *t.as<float>(); }

// The gradient that reaches every term: dmean / count + dsum, either of which may be absent.
double term_gradient(const TensorRef& dmean, const TensorRef& dsum, double count) {
  return (dmean ? scalar(dmean) / count : 0) + (dsum ? scalar(dsum) : 0);
}

struct CrossEntropy {
  CrossEntropyAttrs attrs;
  std::int64_t classes;
  Blocks blocks;

  bool counts(std::int32_t label) const { return label != attrs.ignore_index; }
  bool is_class(std::int32_t label) const { return label >= 0 && label < classes; }

  // (1 - s) * -log p[label] + s * mean_k(-log p[k])
  double row_loss(const float* x, const LogSumExp& row, std::int32_t label) const {
    if (!is_class(label)) return NAN;
    const double s = attrs.label_smoothing;
    const double own = (1 - s) * (row.value() - x[label]);
    // A class of probability 0 has infinite surprise; it must not matter without smoothing.
    if (s == 0) return own;
    const double mean = reduce_row(Reduction::kSum, x, classes) / double(classes);
    return own + s * (row.value() - mean);
  }
};

void cross_entropy(const Binding& b, const CrossEntropy& op) {
  using Out = CrossEntropyOutput;
  const float* logits = b.inputs[In::kLogits].as<float>();
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  float* saved = b.outputs[Out::kLogSumExp].as<float>();
  const Total total = total_of(op.blocks, b.workspace, [&](std::int64_t begin, std::int64_t end) {
    Total part;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* x = logits + i * op.classes;
      const LogSumExp row = log_sum_exp_row(x, op.classes);
      saved[i] = float(row.value());
      if (!op.counts(labels[i])) continue;
      part.sum += op.row_loss(x, row, labels[i]);
      part.count += 1;
    }
    return part;
  });
  scalar(b.outputs[Out::kMean]) = total.count > 0 ? float(total.sum / total.count) : 0;
  scalar(b.outputs[Out::kSum]) = float(total.sum);
  scalar(b.outputs[Out::kCount]) = float(total.count);
}

void cross_entropy_backward(const Binding& b, const CrossEntropy& op) {
  const float* logits = b.inputs[In::kLogits].as<float>();
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  const float* saved = b.inputs[In::kLogSumExp].as<float>();
  float* dlogits = b.outputs[0].as<float>();
  const double s = op.attrs.label_smoothing;
  const float gradient =
      float(term_gradient(b.inputs[In::kDmean], b.inputs[In::kDsum], scalar(b.inputs[In::kCount])));
  const float share = float(s / double(op.classes)), own = float((1 - s) * gradient);
  parallel_range(op.blocks.rows, op.blocks.block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* d = dlogits + i * op.classes;
      if (!op.counts(labels[i])) {
        std::fill_n(d, op.classes, 0.0f);
        continue;
      }
      softmax_gradient_row(logits + i * op.classes, d, op.classes, {saved[i], share, gradient});
      if (op.is_class(labels[i])) d[labels[i]] -= own;
    }
  });
}

void classification_errors(const Binding& b, const CrossEntropy& op) {
  const float* logits = b.inputs[In::kLogits].as<float>();
  const std::int32_t* labels = b.inputs[In::kLabels].as<std::int32_t>();
  const Total total = total_of(op.blocks, b.workspace, [&](std::int64_t begin, std::int64_t end) {
    Total part;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* x = logits + i * op.classes;
      const float largest = largest_of(x, op.classes);
      const std::int64_t guess = std::find(x, x + op.classes, largest) - x;
      const bool has_nan = std::any_of(x, x + op.classes, [](float v) { return std::isnan(v); });
      part.count += op.counts(labels[i]) && (has_nan || guess != labels[i]);
    }
    return part;
  });
  scalar(b.outputs[0]) = float(total.count);
}

void bce_with_logits(const Binding& b, const Blocks& blocks) {
  const float *x = b.inputs[Bce::kLogits].as<float>(), *t = b.inputs[Bce::kTargets].as<float>();
  const Total total = total_of(blocks, b.workspace, [&](std::int64_t begin, std::int64_t end) {
    return Total{bce_sum(x + begin, t + begin, end - begin), 0};
  });
  scalar(b.outputs[BceOutput::kMean]) = float(total.sum / double(blocks.rows));
  scalar(b.outputs[BceOutput::kSum]) = float(total.sum);
}

void bce_with_logits_backward(const Binding& b) {
  const float *x = b.inputs[Bce::kLogits].as<float>(), *t = b.inputs[Bce::kTargets].as<float>();
  float* dx = b.outputs[0].as<float>();
  const std::int64_t n = b.inputs[Bce::kLogits].elements();
  const float gradient =
      float(term_gradient(b.inputs[Bce::kDmean], b.inputs[Bce::kDsum], double(n)));
  parallel_range(n, kBlockElements, [&](std::int64_t begin, std::int64_t end) {
    bce_gradient(x + begin, t + begin, dx + begin, end - begin, gradient);
  });
}

CrossEntropy cross_entropy_of(const NodeContext& context) {
  const Shape& logits = context.input(In::kLogits).shape;
  return {context.attrs<CrossEntropyAttrs>(), logits[1], Blocks::of(logits[0], logits[1])};
}

}  // namespace

Prepared prepare_cross_entropy(const NodeContext& context) {
  const CrossEntropy op = cross_entropy_of(context);
  return kernel_of([op](const Binding& b) { cross_entropy(b, op); }, workspace_of(op.blocks));
}

Prepared prepare_cross_entropy_backward(const NodeContext& context) {
  const CrossEntropy op = cross_entropy_of(context);
  return kernel_of([op](const Binding& b) { cross_entropy_backward(b, op); });
}

Prepared prepare_classification_errors(const NodeContext& context) {
  const CrossEntropy op = cross_entropy_of(context);
  return kernel_of([op](const Binding& b) { classification_errors(b, op); },
                   workspace_of(op.blocks));
}

Prepared prepare_bce_with_logits(const NodeContext& context) {
  const Blocks blocks = Blocks::of(context.input(Bce::kLogits).shape.elements(), 1);
  return kernel_of([blocks](const Binding& b) { bce_with_logits(b, blocks); },
                   workspace_of(blocks));
}

Prepared prepare_bce_with_logits_backward(const NodeContext&) {
  return kernel_of(bce_with_logits_backward);
}

}  // namespace keel::onednn
