// One step of an element-wise program on one element, as src/ops/elementwise.h defines it.
#pragma once

#include <cmath>

#include "backends/cuda/device.h"
#include "src/ops/elementwise.h"

namespace keel::cuda {

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Phi(x), the normal distribution function, and its derivative.
__device__ inline float normal_cdf(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__device__ inline float normal_pdf(float x) { return expf(-0.5f * x * x) * 0.39894228f; }

__device__ inline float run_unary(EwCode code, float x, float factor, float offset) {
  switch (code) {
    case EwCode::kScale:
      return fmaf(factor, x, offset);
    case EwCode::kNeg:
      return -x;
    case EwCode::kSquare:
      return x * x;
    case EwCode::kSqrt:
      return sqrtf(x);
    case EwCode::kExp:
      return expf(x);
    case EwCode::kLog:
      return logf(x);
    case EwCode::kAbs:
      return fabsf(x);
    case EwCode::kRelu:
      return x <= 0 ? 0 : x;  // NaN stays
    case EwCode::kTanh:
      return tanhf(x);
    case EwCode::kSigmoid:
      return sigmoid(x);
    case EwCode::kGelu:
      return x * normal_cdf(x);
    case EwCode::kSoftplus:
      return (x <= 0 ? 0 : x) + log1pf(expf(-fabsf(x)));
    default:
      return x;  // kCast
  }
}

__device__ inline float run_backward(EwCode code, float dy, float b, float c) {
  switch (code) {
    case EwCode::kSqrtBackward:
      return dy / (2 * b);
    case EwCode::kReluBackward:
      return b > 0 ? dy : 0;
    case EwCode::kTanhBackward:
      return dy * (1 - b * b);
    case EwCode::kSigmoidBackward:
      return dy * b * (1 - b);
    case EwCode::kSquareBackward:
      return 2 * dy * b;
    case EwCode::kAbsBackward:
      return b > 0 ? dy : b < 0 ? -dy : 0;
    case EwCode::kGeluBackward:
      return dy * (normal_cdf(b) + b * normal_pdf(b));
    case EwCode::kSoftplusBackward:
      return dy * sigmoid(b);
    case EwCode::kGreaterEqualBackward:
      return b >= c ? dy : 0;
    default:
      return b < c ? dy : 0;  // kLessBackward
  }
}

__device__ inline float run_binary(EwCode code, float a, float b, float c) {
  switch (code) {
    case EwCode::kAdd:
      return a + b;
    case EwCode::kSub:
      return a - b;
    case EwCode::kMul:
      return a * b;
    case EwCode::kDiv:
      return a / b;
    case EwCode::kMaximum:
      return isnan(a) || a >= b ? a : b;
    case EwCode::kMinimum:
      return isnan(a) || a <= b ? a : b;
    case EwCode::kLess:
      return a < b;
    case EwCode::kEqual:
      return a == b;
    default:
      return a != 0 ? b : c;  // kSelect
  }
}

}  // namespace keel::cuda
