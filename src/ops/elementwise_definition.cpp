// The definition of every element-wise code on one element, in double.
#include <algorithm>
#include <cmath>

#include "src/ops/elementwise.h"

namespace keel {
namespace {

using enum EwCode;

double gelu_cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
double gelu_pdf(double x) { return std::exp(-0.5 * x * x) * (0.5 * M_SQRT1_2 * M_2_SQRTPI); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double evaluate_unary(EwCode code, double x, const ScaleAttrs& scale) {
  switch (code) {
    case kScale:
      return scale.factor * x + scale.offset;
    case kNeg:
      return -x;
    case kSquare:
      return x * x;
    case kSqrt:
      return std::sqrt(x);
    case kExp:
      return std::exp(x);
    case kLog:
      return std::log(x);
    case kAbs:
      return std::abs(x);
    case kRelu:
      return std::isnan(x) || x > 0 ? x : 0;
    case kTanh:
      return std::tanh(x);
    case kSigmoid:
      return sigmoid(x);
    case kGelu:
      return x * gelu_cdf(x);
    case kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case kCast:
      return x;
    default:
      return NAN;
  }
}

double evaluate_backward(EwCode code, const std::array<double, 3>& operands) {
  const auto [dy, b, c] = operands;
  switch (code) {
    case kSqrtBackward:
      return dy / (2 * b);
    case kReluBackward:
      return b > 0 ? dy : 0;
    case kTanhBackward:
      return dy * (1 - b * b);
    case kSigmoidBackward:
      return dy * b * (1 - b);
    case kSquareBackward:
      return 2 * dy * b;
    case kAbsBackward:
      return b > 0 ? dy : b < 0 ? -dy : 0;
    case kGeluBackward:
      return dy * (gelu_cdf(b) + b * gelu_pdf(b));
    case kSoftplusBackward:
      return dy * sigmoid(b);
    case kGreaterEqualBackward:
      return b >= c ? dy : 0;
    case kLessBackward:
      return b < c ? dy : 0;
    default:
      return NAN;
  }
}

}  // namespace

double evaluate(EwCode code, const std::array<double, 3>& operands, const ScaleAttrs& scale) {
  if (code >= kSqrtBackward) return evaluate_backward(code, operands);
  if (arity(code) == 1) return evaluate_unary(code, operands[0], scale);
  const auto [a, b, c] = operands;
  switch (code) {
    case kAdd:
      return a + b;
    case kSub:
      return a - b;
    case kMul:
      return a * b;
    case kDiv:
      return a / b;
    case kMaximum:
      return std::isnan(a) || a >= b ? a : b;
    case kMinimum:
      return std::isnan(a) || a <= b ? a : b;
    case kLess:
      return a < b;
    case kEqual:
      return a == b;
    case kSelect:
      return a != 0 ? b : c;
    default:
      return NAN;
  }
}

}  // namespace keel
