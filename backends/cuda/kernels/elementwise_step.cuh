// One step of an element-wise program on some elements, as src/ops/elementwise.h defines it.
#pragma once

#include "backends/cuda/kernels/functions.cuh"
#include "src/ops/elementwise.h"

namespace keel::cuda {

// The elements that a thread has at a time: for all of them a step is looked up once.
template <int kCount>
struct Several {
  float at[kCount];
};

// f of each element.
template <int kCount, class F, class... More>
__device__ Several<kCount> each(F f, const Several<kCount>& a, const More&... more) {
  Several<kCount> result;
  KEEL_UNROLL
  for (int i = 0; i < kCount; ++i) result.at[i] = f(a.at[i], more.at[i]...);
  return result;
}

template <int kCount>
__device__ Several<kCount> run_unary(EwCode code, const Several<kCount>& a, float factor,
                                      float offset) {
  switch (code) {
    case EwCode::kScale:
      return each([=](float x) { return fmaf(factor, x, offset); }, a);
    case EwCode::kNeg:
      return each([](float x) { return -x; }, a);
    case EwCode::kSquare:
      return each([](float x) { return x * x; }, a);
    case EwCode::kSqrt:
      return each([](float x) { return sqrtf(x); }, a);
    case EwCode::kExp:
      return each([](float x) { return exponential(x); }, a);
    case EwCode::kLog:
      return each([](float x) { return logf(x); }, a);
    case EwCode::kAbs:
      return each([](float x) { return fabsf(x); }, a);
    case EwCode::kRelu:
      return each([](float x) { return x <= 0 ? 0 : x; }, a);  // NaN stays
    case EwCode::kTanh:
      return each([](float x) { return hyperbolic_tangent(x); }, a);
    case EwCode::kSigmoid:
      return each([](float x) { return sigmoid(x); }, a);
    case EwCode::kGelu:
      return each([](float x) { return gelu(x); }, a);
    case EwCode::kSoftplus:
      return each([](float x) { return softplus(x); }, a);
    default:
      return a;  // kCast
  }
}

template <int kCount>
__device__ Several<kCount> run_backward(EwCode code, const Several<kCount>& dy,
                                         const Several<kCount>& b, const Several<kCount>& c) {
  switch (code) {
    case EwCode::kSqrtBackward:
      return each([](float d, float y) { return d / (2 * y); }, dy, b);
    case EwCode::kReluBackward:
      return each([](float d, float y) { return y > 0 ? d : 0; }, dy, b);
    case EwCode::kTanhBackward:
      return each([](float d, float y) { return d * (1 - y * y); }, dy, b);
    case EwCode::kSigmoidBackward:
      return each([](float d, float y) { return d * y * (1 - y); }, dy, b);
    case EwCode::kSquareBackward:
      return each([](float d, float x) { return 2 * d * x; }, dy, b);
    case EwCode::kAbsBackward:
      return each([](float d, float x) { return x > 0 ? d : x < 0 ? -d : 0; }, dy, b);
    case EwCode::kGeluBackward:
      return each([](float d, float x) { return d * gelu_derivative(x); }, dy, b);
    case EwCode::kSoftplusBackward:
      return each([](float d, float x) { return d * sigmoid(x); }, dy, b);
    case EwCode::kGreaterEqualBackward:
      return each([](float d, float p, float q) { return p >= q ? d : 0; }, dy, b, c);
    default:  // kLessBackward
      return each([](float d, float p, float q) { return p < q ? d : 0; }, dy, b, c);
  }
}

template <int kCount>
__device__ Several<kCount> run_binary(EwCode code, const Several<kCount>& a,
                                       const Several<kCount>& b, const Several<kCount>& c) {
  switch (code) {
    case EwCode::kAdd:
      return each([](float x, float y) { return x + y; }, a, b);
    case EwCode::kSub:
      return each([](float x, float y) { return x - y; }, a, b);
    case EwCode::kMul:
      return each([](float x, float y) { return x * y; }, a, b);
    case EwCode::kDiv:
      return each([](float x, float y) { return x / y; }, a, b);
    case EwCode::kMaximum:
      return each([](float x, float y) { return isnan(x) || x >= y ? x : y; }, a, b);
    case EwCode::kMinimum:
      return each([](float x, float y) { return isnan(x) || x <= y ? x : y; }, a, b);
    case EwCode::kLess:
      return each([](float x, float y) { return float(x < y); }, a, b);
    case EwCode::kEqual:
      return each([](float x, float y) { return float(x == y); }, a, b);
    default:
      return each([](float chosen, float x, float y) { return chosen != 0 ? x : y; }, a, b, c);
  }
}

}  // namespace keel::cuda
