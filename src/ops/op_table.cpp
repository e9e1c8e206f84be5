#include "src/ops/op_table.h"

#include "src/ops/attention.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/norm_noise.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/pool2d.h"
#include "src/ops/random_normal.h"
#include "src/ops/reduce.h"
#include "src/ops/softmax.h"
#include "src/ops/stop_gradient.h"

namespace keel {

#define X(name, Name) extern const OpInfo k##Name, k##Name##Backward;
#include "norm_list.inc"
#undef X

namespace {

std::vector<const OpInfo*> make_list() {
  std::vector<const OpInfo*> list;
  for (int code = 0; code < kEwCount; ++code) {
    list.push_back(&elementwise_op(static_cast<EwCode>(code)));
  }
  list.insert(list.end(), {&kFusedElementwise,
                           &kMatmul,
                           &kSum,
                           &kMean,
                           &kMax,
                           &kMaxBackward,
                           &kBroadcastTo,
                           &kReshape,
                           &kTranspose,
                           &kSlice,
                           &kConcat,
                           &kPad,
                           &kSoftmax,
                           &kSoftmaxBackward,
                           &kLogSoftmax,
                           &kLogSoftmaxBackward,
                           &kCrossEntropy,
                           &kCrossEntropyBackward,
                           &kBceWithLogits,
                           &kBceWithLogitsBackward,
                           &kClassificationErrors,
                           &kConv2d,
                           &kConv2dBackwardInput,
                           &kConv2dBackwardWeight,
                           &kMaxPool2d,
                           &kMaxPool2dBackward,
                           &kAvgPool2d,
                           &kAvgPool2dBackward,
                           &kEmbedding,
                           &kEmbeddingBackward,
                           &kDropout,
                           &kDropoutBackward,
                           &kAttention,
                           &kAttentionBackward,
                           &kNormNoise,
                           &kNormNoiseBackward,
                           &kRandomNormal,
                           &kStopGradient,
                           &kSgdStep,
                           &kAdamStep,
                           &kAdagradStep,
                           &kGravesStep,
                           &kSumSquares});
#define X(name, Name) list.insert(list.end(), {&k##Name, &k##Name##Backward});
#include "norm_list.inc"
#undef X
  return list;
}

}  // namespace

std::span<const OpInfo* const> all_ops() {
  static const std::vector<const OpInfo*> list = make_list();
  return list;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo* op : all_ops()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

}  // namespace keel
