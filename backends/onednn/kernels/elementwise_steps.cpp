#include "backends/onednn/kernels/elementwise_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/elementwise_steps.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

static_assert(kLanes <= kMaxLanes);

// out = op(a, b, c) for the first kArity sources.
template <int kArity, class Op>
HWY_INLINE void map(const StepArgs& args, const Op& op) {
  const auto [p, q, r] = args.source;
  float* out = args.out;
  for_lanes(args.n, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats a = part.load(p.data + i * p.step);
    const Floats b = kArity > 1 ? part.load(q.data + i * q.step) : a;
    const Floats c = kArity > 2 ? part.load(r.data + i * r.step) : a;
    part.store(op(a, b, c), out + i);
  });
}

HWY_INLINE Floats one_where(hn::Mask<F> mask) { return hn::IfThenElseZero(mask, splat(1.0f)); }

using V = Floats;

void step_basic(EwCode code, const StepArgs& args) {
  switch (code) {
    case EwCode::kAdd:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Add(a, b); });
    case EwCode::kSub:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Sub(a, b); });
    case EwCode::kMul:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Mul(a, b); });
    case EwCode::kDiv:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Div(a, b); });
    case EwCode::kMaximum:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return larger(a, b); });
    case EwCode::kMinimum:
      return map<2>(args,
                    [](V a, V b, V) HWY_ATTR { return hn::Neg(larger(hn::Neg(a), hn::Neg(b))); });
    case EwCode::kLess:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return one_where(hn::Lt(a, b)); });
    case EwCode::kEqual:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return one_where(hn::Eq(a, b)); });
    case EwCode::kSelect:
      return map<3>(args,
                    [](V a, V b, V c) HWY_ATTR { return hn::IfThenElse(hn::Ne(a, zero()), b, c); });
    case EwCode::kScale: {
      const V factor = splat(args.factor), offset = splat(args.offset);
      return map<1>(args, [=](V a, V, V) HWY_ATTR { return hn::MulAdd(factor, a, offset); });
    }
    case EwCode::kNeg:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return hn::Neg(a); });
    case EwCode::kSquare:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return hn::Mul(a, a); });
    case EwCode::kSqrt:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return hn::Sqrt(a); });
    case EwCode::kAbs:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return hn::Abs(a); });
    case EwCode::kRelu:
      return map<1>(args,
                    [](V a, V, V) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(a, zero()), a); });
    default:  // kCast between floats
      return map<1>(args, [](V a, V, V) HWY_ATTR { return a; });
  }
}

void step_function(EwCode code, const StepArgs& args) {
  switch (code) {
    case EwCode::kExp:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return exp(a); });
    case EwCode::kLog:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return log(a); });
    case EwCode::kTanh:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return tanh(a); });
    case EwCode::kSigmoid:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return sigmoid(a); });
    case EwCode::kGelu:
      return map<1>(args, [](V a, V, V) HWY_ATTR { return gelu(a); });
    default:  // kSoftplus
      return map<1>(args, [](V a, V, V) HWY_ATTR { return softplus(a); });
  }
}

void step_backward(EwCode code, const StepArgs& args) {
  switch (code) {
    case EwCode::kSqrtBackward:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Div(a, hn::Add(b, b)); });
    case EwCode::kReluBackward:
      return map<2>(args,
                    [](V a, V b, V) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(b, zero()), a); });
    case EwCode::kTanhBackward:
      return map<2>(
          args, [](V a, V b, V) HWY_ATTR { return hn::Mul(a, hn::NegMulAdd(b, b, splat(1.0f))); });
    case EwCode::kSigmoidBackward:
      return map<2>(args, [](V a, V b, V)
                              HWY_ATTR { return hn::Mul(hn::Mul(a, b), hn::Sub(splat(1.0f), b)); });
    case EwCode::kSquareBackward:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Mul(splat(2.0f), hn::Mul(a, b)); });
    case EwCode::kAbsBackward:
      return map<2>(args, [](V a, V b, V) HWY_ATTR {
        const V negative = hn::IfThenElseZero(hn::Lt(b, zero()), hn::Neg(a));
        return hn::IfThenElse(hn::Gt(b, zero()), a, negative);
      });
    case EwCode::kGeluBackward:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Mul(a, gelu_derivative(b)); });
    case EwCode::kSoftplusBackward:
      return map<2>(args, [](V a, V b, V) HWY_ATTR { return hn::Mul(a, sigmoid(b)); });
    case EwCode::kGreaterEqualBackward:
      return map<3>(args,
                    [](V a, V b, V c) HWY_ATTR { return hn::IfThenElseZero(hn::Ge(b, c), a); });
    default:  // kLessBackward
      return map<3>(args,
                    [](V a, V b, V c) HWY_ATTR { return hn::IfThenElseZero(hn::Lt(b, c), a); });
  }
}

void step(EwCode code, const StepArgs& args) {
  switch (code) {
    case EwCode::kExp:
    case EwCode::kLog:
    case EwCode::kTanh:
    case EwCode::kSigmoid:
    case EwCode::kGelu:
    case EwCode::kSoftplus:
      return step_function(code, args);
    default:
      return code >= EwCode::kSqrtBackward ? step_backward(code, args) : step_basic(code, args);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(step);

void run_step(EwCode code, const StepArgs& args) { HWY_DYNAMIC_DISPATCH(step)(code, args); }

}  // namespace keel::onednn
#endif
