// Bounds of element-wise ops and of fused chains of them, step by step on every element.
#include <array>
#include <cmath>
#include <limits>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/core/bf16.h"
#include "src/ops/elementwise.h"

namespace keel::compare {
namespace {

// The error that a code adds to that of its operands: `relative` eps of the result and `absolute`
// eps of the size of operand 0, where it subtracts numbers of that size. Functions: the errors that
// the kernels state for themselves (backends/onednn/simd/math.h), one unit in the last place more
// for targets without fused products; a backward has a rounding for each further operation.
struct Rounding {
  double relative, absolute = 0;
};

Rounding rounding_of(EwCode code, double operand) {
  using enum EwCode;
  switch (code) {
    case kAdd:
    case kSub:
    case kMul:
    case kSquare:
      return {1};
    case kDiv:
    case kSqrt:
      return {2};
    case kExp:
    case kLog:
      return {2 * 1.7};
    case kTanh:
      return {2 * 2.2};
    case kSigmoid:
    case kSoftplus:
      return {2 * 2.5};
    case kGelu:  // Phi(x) takes exp(-x^2 / 2), whose argument may be rounded
      return {2 * 4.3 + (operand < 0 ? 4 * operand * operand : 0)};
    case kSqrtBackward:
    case kSquareBackward:
      return {3};
    case kTanhBackward:  // 1 - y^2 rounds to eps of 1
      return {2, 2};
    case kSigmoidBackward:
      return {4};
    case kGeluBackward:  // the two parts of the derivative, each below 1.2, cross at -0.75
      return {2, 2 * 5};
    case kSoftplusBackward:
      return {2 * 2.5 + 1};
    default:
      return {0};
  }
}

// The same for kernels of any program: functions with an argument scaled before an exponential of
// 2, divisions by an approximate inverse, and absolute errors where a result is a small difference.
Rounding any_rounding_of(EwCode code, const std::array<Err, 3>& operands) {
  using enum EwCode;
  const double x = operands[0].value, size = std::abs(x), below = x < 0 ? size : 0;
  const double of_forward = std::abs(operands[1].value);  // y or x, of a backward code
  switch (code) {
    case kAdd:
    case kSub:
    case kMul:
    case kSquare:
      return {1};
    case kDiv:
      return {5};
    case kSqrt:
      return {2};
    case kExp:
      return {4 + 2.4 * size};
    case kLog:  // where a fast logarithm passes through 0 its error stays absolute
      return {4, size > 0 ? 4 / size : 0};
    case kTanh:
      return {6};
    case kSigmoid:
      return {8 + 2.4 * below};
    case kSoftplus:
      return {6 + 2.4 * size};
    case kGelu:  // x (1 + erf(x)) / 2 subtracts from 1 where x is below 0
      return {8, 6};
    case kSqrtBackward:
      return {6};
    case kSquareBackward:
      return {3};
    case kTanhBackward:
      return {3, 2};
    case kSigmoidBackward:
      return {5, of_forward};
    case kGeluBackward:
      return {2, 12};
    case kSoftplusBackward:
      return {9 + 2.4 * (operands[1].value < 0 ? of_forward : 0)};
    default:
      return {0};
  }
}

// The error of factor * x + offset: the constants are rounded to float32, then the product and the
// sum.
Err scaled(const Err& x, const ScaleAttrs& attrs) {
  const double product = attrs.factor * x.value;
  return {product + attrs.offset, std::abs(attrs.factor) * x.error + kTiny +
                                      kEps * (2 * std::abs(product) + std::abs(attrs.offset) +
                                              std::abs(product + attrs.offset))};
}

// Whether the code divides by an operand that may be 0.
bool divides_by_zero(EwCode code, const std::array<Err, 3>& operands) {
  if (code != EwCode::kDiv && code != EwCode::kSqrtBackward) return false;
  return operands[1].error > 0 && std::abs(operands[1].value) <= operands[1].error;
}

// The effect of the operands' errors on the result: each operand is moved to both its ends. Codes
// are monotone or constant over such a distance, but for jumps, which the ends show, a pole, and
// equality.
double spread(const EwStep& step, const std::array<Err, 3>& operands, double value) {
  if (divides_by_zero(step.code, operands)) return INFINITY;
  if (step.code == EwCode::kEqual) {  // the ends may be equal to nothing, and what lies between
    const double room = operands[0].error + operands[1].error;
    return room > 0 && std::abs(operands[0].value - operands[1].value) <= room ? 1 : 0;
  }
  double total = 0;
  std::array<double, 3> at{operands[0].value, operands[1].value, operands[2].value};
  for (std::size_t i = 0; i < std::size_t(arity(step.code)); ++i) {
    if (operands[i].error == 0) continue;
    double largest = 0;
    for (const double sign : {-1.0, 1.0}) {
      at[i] = operands[i].value + sign * operands[i].error;
      const double moved = evaluate(step.code, at, step.scale);
      largest = std::max(largest, std::isnan(moved) ? INFINITY : std::abs(moved - value));
    }
    at[i] = operands[i].value;
    total += largest;
  }
  return total;
}

Err run_step(const EwStep& step, const std::array<Err, 3>& operands, Kernels kernels) {
  if (step.code == EwCode::kScale) return scaled(operands[0], step.scale);
  const double value =
      evaluate(step.code, {operands[0].value, operands[1].value, operands[2].value}, step.scale);
  const Rounding rounding = kernels == Kernels::kKeel ? rounding_of(step.code, operands[0].value)
                                                      : any_rounding_of(step.code, operands);
  const double own = kEps * (rounding.relative * std::abs(value) +
                             rounding.absolute * std::abs(operands[0].value));
  const double moved = spread(step, operands, value);
  // The product with eps may be too small for a double.
  const bool is_rounded = rounding.relative + rounding.absolute > 0 && value != 0;
  return {value, moved + own + (own > 0 || is_rounded ? kTiny : 0)};
}

// If float32 cannot hold a value between steps, nothing that follows it can be compared.
Err held(const Err& value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const bool overflows = std::isfinite(value.value) && value.size() > kLargest;
  return overflows ? Err(value.value, INFINITY) : value;
}

Err run_program(const EwProgram& program, std::array<Err, kMostEwRegisters>& registers,
                Kernels kernels) {
  std::size_t next = std::size_t(program.inputs);
  for (const EwStep& step : program.steps) {
    std::array<Err, 3> operands{};
    for (std::size_t i = 0; i < std::size_t(arity(step.code)); ++i) {
      operands[i] = held(registers[std::size_t(step.source[i])]);
    }
    registers[next++] = run_step(step, operands, kernels);
  }
  return registers[next - 1];
}

// A number of input i. A subnormal one may be taken as 0 by any kernel but keel's.
Err operand_of(const ComparedNode& n, int i, std::int64_t place) {
  const double x = n.input(i).at(place);
  const bool may_vanish = n.is_external() && std::abs(x) < kTiny;
  return {x, n.input_error(i, std::size_t(place)) + (may_vanish ? std::abs(x) : 0)};
}

// Element e of the output reads this element of an operand that is stretched to its shape.
std::int64_t stretched_place(const Shape& from, const Shape& to, std::int64_t e) {
  const auto strides = from.strides();
  std::int64_t place = 0;
  for (int axis = to.rank() - 1, own = from.rank() - 1; axis >= 0; --axis, --own) {
    const std::int64_t at = e % to[axis];
    e /= to[axis];
    if (own >= 0 && from[own] != 1) place += at * strides[std::size_t(own)];
  }
  return place;
}

}  // namespace

Err applied(EwCode code, const std::array<Err, 3>& operands, Kernels kernels) {
  return run_step({.code = code, .source = {}, .scale = {}}, operands, kernels);
}

namespace {

void elementwise(const ComparedNode& n, NodeBounds& bounds) {
  const EwProgram program = program_of(n.node());
  check(fits_kernels(program), ErrorKind::kInternal, "{}: a program too long to be compared",
        n.node().name);
  const Shape& shape = n.outputs[0].shape();
  std::array<Err, kMostEwRegisters> registers;
  const auto bound = bounds[0].as<double>();
  for (std::size_t e = 0; e < bound.size(); ++e) {
    for (int i = 0; i < program.inputs; ++i) {
      const Tensor& x = n.input(i);
      const bool whole = x.shape() == shape;
      const std::int64_t place =
          whole ? std::int64_t(e) : stretched_place(x.shape(), shape, std::int64_t(e));
      registers[std::size_t(i)] = operand_of(n, i, place);
    }
    bound[e] = run_program(program, registers, n.kernels).error;
  }
}

// Where the program had another number than the reference, both numbers are rounded.
void cast(const ComparedNode& n, NodeBounds& bounds) {
  elementwise(n, bounds);
  if (n.graph.type({n.index, 0}).dtype != DType::kBF16) return;
  for (std::size_t e = 0; e < n.in(0).size(); ++e) {
    double& bound = bounds[0].as<double>()[e];
    bound = apart_in_bf16(n.in(0)[e], bound);
  }
}

}  // namespace

void add_elementwise_rules(BoundRules& rules) {
  for (int code = 0; code < kEwCount; ++code) {
    rules[elementwise_op(static_cast<EwCode>(code)).name] = elementwise;
  }
  rules["fused_elementwise"] = elementwise;
  rules[elementwise_op(EwCode::kCast).name] = cast;
}

}  // namespace keel::compare
