// Code shared by norm ops: the places of their inputs and outputs, how a statistic is formed, and
// the checks of gain and bias.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Places of inputs and outputs that several norms have in common, for shared code. A norm with
// further inputs or outputs lists all of its places itself.

// The first input and the first output of a norm, and the first output of its backward.
struct NormInput {
  enum Place : int { kX };
};
struct NormOutput {
  enum Place : int { kY };
};
struct NormGradient {
  enum Place : int { kDx };
};
// The inputs of a norm with gain and bias, and the gradients that its backward returns.
struct AffineInput {
  enum Place : int { kX, kGain, kBias };
};
struct AffineGradient {
  enum Place : int { kDx, kDgain, kDbias };
};
// The outputs of a norm that subtracts a mean, and the inputs of its backward
// without a gain and with one.
struct CentredOutput {
  enum Place : int { kY, kMean, kRstd };
};
struct CentredBackwardInput {
  enum Place : int { kX, kMean, kRstd, kDy };
};
struct CentredAffineBackwardInput {
  enum Place : int { kX, kGain, kMean, kRstd, kDy };
};

// The scale s that a centred norm divides by, from SS = sum (x - mean)^2 over n elements:
//     s = sqrt(SS / N + eps),  or with eps_outside  s = sqrt(SS / N) + eps,
// where N = variance_count(n, unbiased).
struct NormStatistic {
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
};

// N is n, or n - 1 when `unbiased`, but at least 1. If a mask leaves n = 1 or 0 elements,
// SS is 0 and so is SS / N.
constexpr double variance_count(std::int64_t n, bool unbiased) {
  const std::int64_t count = unbiased ? n - 1 : n;
  return static_cast<double>(count > 1 ? count : 1);
}

// The attributes of the backward of a norm with gain and bias: those of the forward, and whether
// the forward has a bias, since the gradient of the bias is an output. The bias itself is no input.
template <class ForwardAttrs>
struct WithDbias : ForwardAttrs {
  bool wants_dbias = false;
  static constexpr auto fields() {
    return std::tuple_cat(ForwardAttrs::fields(),
                          std::tuple{field("wants_dbias", &WithDbias::wants_dbias)});
  }
};

// Throws unless eps >= 0 and, for an unbiased statistic, `count` >= 2.
void expect_statistic(const InferContext& c, const NormStatistic& statistic, std::int64_t count);

// The element types of a norm. x, and dy with it, may be bf16, which a kernel widens as it reads
// them. All else is then float32: gain, bias and their gradients, what is saved for the backward,
// running state, and y and dx too. That y or dx is rounded as it is stored is a fact of the node
// (Graph::narrow_result).

// The type of all that is not x or dy; `place` is that of x or dy.
DType wide_type(const InferContext& c, int place = NormInput::kX);
// The type of y and dx.
TensorType wide_x(const InferContext& c);
// Throws unless dy has the shape and the element type of x.
void expect_dy(const InferContext& c, int place);
// The gradient of y as the backward reads it, in the type of x. Rounding it to bf16 is a node.
Value gradient_like_x(BackwardContext& c);

// Throws unless the inputs at the places `gain` and `bias` are absent or have the shape `expected`
// and the type of what is beside x.
void expect_affine(const InferContext& c, int gain, int bias, const Shape& expected);

// Throws unless the input is one number of the type of what is beside x.
void expect_number(const InferContext& c, int place);

// `type` if the output applies, else the type of an absent output.
TensorType type_if(bool applies, const TensorType& type);

// The type of the gradient of an optional input: its own type, or absent.
TensorType gradient_type(const InferContext& c, int input);

// Passes the outputs of a backward node on as the gradients of the inputs that are wanted: "dgain"
// is that of "gain".
void set_gradients(BackwardContext& c, Value backward);

namespace ops {

// The learned scale and shift of a norm; each may be absent.
struct NormAffine {
  Value gain, bias;
};

}  // namespace ops

}  // namespace keel
