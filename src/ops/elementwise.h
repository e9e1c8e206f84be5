// Element-wise ops with NumPy broadcasting. One table of codes serves single nodes and the fused
// programs that the fusion pass makes of chains.
//
// Operands and results are floating and of one type, except: some operands of a float32 result may
// be bf16; less and equal return u8 (0 or 1); select takes a u8 condition; cast takes and returns
// any type.
// errors: mixed types; shapes that do not broadcast.      in place: over an operand of equal type.
#pragma once

#include <array>
#include <optional>

#include "src/graph/graph.h"

namespace keel {

enum class EwCode : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kLess,
  kEqual,   // u8
  kSelect,  // condition != 0 ? a : b
  kScale,   // factor * x + offset
  kNeg,
  kSquare,
  kSqrt,
  kExp,
  kLog,
  kAbs,
  kRelu,
  kTanh,
  kSigmoid,
  kGelu,      // x * Phi(x) = x * (1 + erf(x / sqrt 2)) / 2
  kSoftplus,  // log(1 + exp(x))
  kCast,
  // The backward codes. The first four take (dy, y), where y is the result; the next four take
  // (dy, x), where x is the operand.
  kSqrtBackward,
  kReluBackward,
  kTanhBackward,
  kSigmoidBackward,
  kSquareBackward,
  kAbsBackward,
  kGeluBackward,
  kSoftplusBackward,
  kGreaterEqualBackward,  // (dy, a, b): a >= b ? dy : 0, the share of maximum's first operand
  kLessBackward,          // (dy, a, b): a < b ? dy : 0, the share of its second
  kCount
};

inline constexpr int kEwCount = static_cast<int>(EwCode::kCount);

// A code with two operands, and select, number them by these places; a single operand has place 0.
struct BinaryInput {
  enum Place : int { kA, kB };
};
struct SelectInput {
  enum Place : int { kCondition, kA, kB };
};

struct ScaleAttrs {
  double factor = 1, offset = 0;
  static constexpr auto fields() {
    return std::tuple{field("factor", &ScaleAttrs::factor), field("offset", &ScaleAttrs::offset)};
  }
};

struct CastAttrs {
  DType dtype = DType::kF32;
  static constexpr auto fields() { return std::tuple{field("dtype", &CastAttrs::dtype)}; }
};

const OpInfo& elementwise_op(EwCode code);
// The code of an element-wise op; nothing if the op is not element-wise.
std::optional<EwCode> elementwise_code(const OpInfo& op);
// The number of operands of a code: 1 to 3.
int arity(EwCode code);
// The definition of every code on one element, in double; `scale` is read by kScale only.
double evaluate(EwCode code, const std::array<double, 3>& operands, const ScaleAttrs& scale);

// One step of a fused program: registers 0..inputs-1 hold the operands and step i writes register
// inputs + i. The last step's register is the result.
struct EwStep {
  EwCode code;
  std::array<std::int16_t, 3> source{-1, -1, -1};
  ScaleAttrs scale;
};

struct EwProgram {
  int inputs = 0;
  std::vector<EwStep> steps;
};

// The maximum length of a fused program; kernels hold the program in arrays of this size.
inline constexpr int kMostEwOperands = 8, kMostEwSteps = 16;
inline constexpr int kMostEwRegisters = kMostEwOperands + kMostEwSteps;
inline bool fits_kernels(const EwProgram& program) {
  return program.inputs <= kMostEwOperands && int(program.steps.size()) <= kMostEwSteps;
}

// "r2=add(r0,r1) r3=relu(r2)"
std::string attr_text(const EwProgram& program);
void attr_parse(std::string_view text, EwProgram& program);

struct FusedAttrs {
  EwProgram program;
  static constexpr auto fields() { return std::tuple{field("program", &FusedAttrs::program)}; }
};

// A chain of element-wise ops as one node. Made by the fusion pass, after gradients are built.
extern const OpInfo kFusedElementwise;

// The program of an element-wise or fused node.
EwProgram program_of(const Node& node);

namespace ops {

Value elementwise(Graph& g, EwCode code, std::vector<Value> operands);
Value add(Graph& g, Value a, Value b);
Value sub(Graph& g, Value a, Value b);
Value mul(Graph& g, Value a, Value b);
Value div(Graph& g, Value a, Value b);
Value maximum(Graph& g, Value a, Value b);
Value minimum(Graph& g, Value a, Value b);
Value less(Graph& g, Value a, Value b);
Value equal(Graph& g, Value a, Value b);
Value select(Graph& g, Value condition, Value a, Value b);
// factor * x + offset
Value scale(Graph& g, Value x, double factor, double offset = 0);
Value neg(Graph& g, Value x);
Value square(Graph& g, Value x);
Value sqrt(Graph& g, Value x);
Value exp(Graph& g, Value x);
Value log(Graph& g, Value x);
Value abs(Graph& g, Value x);
Value relu(Graph& g, Value x);
Value tanh(Graph& g, Value x);
Value sigmoid(Graph& g, Value x);
Value gelu(Graph& g, Value x);
Value softplus(Graph& g, Value x);
// x as another element type; floats become integers by truncation.
Value cast(Graph& g, Value x, DType dtype);

}  // namespace ops
}  // namespace keel
