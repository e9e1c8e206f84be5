#include "src/ops/elementwise.h"

#include "src/ops/reduce.h"

namespace keel {
namespace {

using Types = std::vector<TensorType>;
using In = BinaryInput;

Shape broadcast_inputs(const InferContext& c) {
  Shape shape = c.shape(0);
  for (int i = 1; i < int(c.inputs.size()); ++i) {
    try {
      shape = broadcast(shape, c.shape(i));
    } catch (const Error& error) {
      fail(ErrorKind::kUsage, "[{}] {}", c.op.name, error.what());
    }
  }
  return shape;
}

// The type of operands, all of one type; or float32, where some of them are bf16.
DType common_type(const InferContext& c) {
  const auto is = [&](int i, DType dtype) { return c.dtype(i) == dtype; };
  bool has_f32 = false, has_other = false;
  for (int i = 0; i < int(c.inputs.size()); ++i) {
    c.expect_floating(i, "operand");
    has_f32 |= is(i, DType::kF32);
    has_other |= !is(i, DType::kF32) && !is(i, DType::kBF16);
  }
  if (has_f32 && !has_other) return DType::kF32;
  for (int i = 1; i < int(c.inputs.size()); ++i) c.expect_dtype(i, "operand type", c.dtype(0));
  return c.dtype(0);
}

void expect_arity(const InferContext& c, int expected) {
  c.expect(int(c.inputs.size()) == expected, "operands", fmt::format("{}", expected),
           fmt::format("{}", c.inputs.size()));
}

Types infer_arithmetic(const InferContext& c) {
  const EwCode code = static_cast<EwCode>(c.op.code);
  expect_arity(c, arity(code));
  const DType type = common_type(c);
  const bool is_comparison = code == EwCode::kLess || code == EwCode::kEqual;
  return {{is_comparison ? DType::kU8 : type, broadcast_inputs(c)}};
}

Types infer_select(const InferContext& c) {
  using Select = SelectInput;
  expect_arity(c, 3);
  c.expect_dtype(Select::kCondition, "condition", DType::kU8);
  c.expect_floating(Select::kA, "operand 1");
  c.expect_dtype(Select::kB, "operand type", c.dtype(Select::kA));
  return {{c.dtype(Select::kA), broadcast_inputs(c)}};
}

Types infer_cast(const InferContext& c) {
  expect_arity(c, 1);
  return {{c.attrs.as<CastAttrs>().dtype, c.shape(0)}};
}

Types infer_fused(const InferContext& c) {
  expect_arity(c, c.attrs.as<FusedAttrs>().program.inputs);
  return {{common_type(c), broadcast_inputs(c)}};
}

// Adds up `gradient` over the axes along which operand i was stretched.
void set_reduced(BackwardContext& c, int i, Value gradient) {
  c.set(i, ops::sum_to(c.graph, gradient, c.graph.shape(c.input(i))));
}

void backward_add(BackwardContext& c) {
  for (int i : {In::kA, In::kB}) {
    if (c.needs(i)) set_reduced(c, i, c.grad());
  }
}

void backward_sub(BackwardContext& c) {
  if (c.needs(In::kA)) set_reduced(c, In::kA, c.grad());
  if (c.needs(In::kB)) set_reduced(c, In::kB, ops::neg(c.graph, c.grad()));
}

void backward_mul(BackwardContext& c) {
  if (c.needs(In::kA)) set_reduced(c, In::kA, ops::mul(c.graph, c.grad(), c.input(In::kB)));
  if (c.needs(In::kB)) set_reduced(c, In::kB, ops::mul(c.graph, c.grad(), c.input(In::kA)));
}

// y = a / b:  da = dy / b,  db = -dy * y / b.
void backward_div(BackwardContext& c) {
  const Value da = ops::div(c.graph, c.grad(), c.input(In::kB));
  if (c.needs(In::kA)) set_reduced(c, In::kA, da);
  if (!c.needs(In::kB)) return;
  set_reduced(c, In::kB, ops::neg(c.graph, ops::mul(c.graph, da, c.output(0))));
}

// Ties give the whole gradient to the first operand.
void backward_extremum(BackwardContext& c) {
  const bool is_max = static_cast<EwCode>(c.graph.node(c.output(0)).op->code) == EwCode::kMaximum;
  // minimum(a, b): a wins where b >= a, b where b < a; maximum with the operands exchanged.
  const Value a = c.input(is_max ? In::kA : In::kB), b = c.input(is_max ? In::kB : In::kA);
  const auto share = [&](EwCode code) { return ops::elementwise(c.graph, code, {c.grad(), a, b}); };
  if (c.needs(In::kA)) set_reduced(c, In::kA, share(EwCode::kGreaterEqualBackward));
  if (c.needs(In::kB)) set_reduced(c, In::kB, share(EwCode::kLessBackward));
}

void backward_select(BackwardContext& c) {
  using Select = SelectInput;
  const Value zero = c.graph.constant(0.0, c.type(c.output(0)).dtype);
  const Value condition = c.input(Select::kCondition), dy = c.grad();
  if (c.needs(Select::kA)) set_reduced(c, Select::kA, ops::select(c.graph, condition, dy, zero));
  if (c.needs(Select::kB)) set_reduced(c, Select::kB, ops::select(c.graph, condition, zero, dy));
}

void backward_scale(BackwardContext& c) {
  c.set(0, ops::scale(c.graph, c.grad(), c.attrs().as<ScaleAttrs>().factor));
}
void backward_neg(BackwardContext& c) { c.set(0, ops::neg(c.graph, c.grad())); }
void backward_exp(BackwardContext& c) { c.set(0, ops::mul(c.graph, c.grad(), c.output(0))); }
void backward_log(BackwardContext& c) { c.set(0, ops::div(c.graph, c.grad(), c.input(0))); }
// The gradient of a bf16 value stays as wide as it comes, so that sums of gradients are float32.
void backward_cast(BackwardContext& c) {
  const DType from = c.type(c.input(0)).dtype, given = c.type(c.grad()).dtype;
  if (!is_floating(from)) return;  // integers have no gradient
  const bool fits = given == from || from == DType::kBF16;
  c.set(0, fits ? c.grad() : ops::cast(c.graph, c.grad(), from));
}

// The backward codes read the forward's result (kFromResult) or its operand.
template <EwCode kBackward, bool kFromResult>
void backward_unary(BackwardContext& c) {
  c.set(0,
        ops::elementwise(c.graph, kBackward, {c.grad(), kFromResult ? c.output(0) : c.input(0)}));
}

// The names of a code's operands.
struct Operands {
  int count;
  const char* names[3];
};
constexpr Operands kUnary{1, {"x"}}, kBinary{2, {"a", "b"}}, kFromY{2, {"dy", "y"}},
    kFromX{2, {"dy", "x"}}, kFromBoth{3, {"dy", "a", "b"}}, kChoice{3, {"condition", "a", "b"}};

struct Row {
  EwCode code;
  const char* name;
  Operands operands;
  void (*backward)(BackwardContext&);
};

using enum EwCode;

constexpr std::array<Row, kEwCount> kRows{{
    {kAdd, "add", kBinary, backward_add},
    {kSub, "sub", kBinary, backward_sub},
    {kMul, "mul", kBinary, backward_mul},
    {kDiv, "div", kBinary, backward_div},
    {kMaximum, "maximum", kBinary, backward_extremum},
    {kMinimum, "minimum", kBinary, backward_extremum},
    {kLess, "less", kBinary, nullptr},
    {kEqual, "equal", kBinary, nullptr},
    {kSelect, "select", kChoice, backward_select},
    {kScale, "scale", kUnary, backward_scale},
    {kNeg, "neg", kUnary, backward_neg},
    {kSquare, "square", kUnary, backward_unary<kSquareBackward, false>},
    {kSqrt, "sqrt", kUnary, backward_unary<kSqrtBackward, true>},
    {kExp, "exp", kUnary, backward_exp},
    {kLog, "log", kUnary, backward_log},
    {kAbs, "abs", kUnary, backward_unary<kAbsBackward, false>},
    {kRelu, "relu", kUnary, backward_unary<kReluBackward, true>},
    {kTanh, "tanh", kUnary, backward_unary<kTanhBackward, true>},
    {kSigmoid, "sigmoid", kUnary, backward_unary<kSigmoidBackward, true>},
    {kGelu, "gelu", kUnary, backward_unary<kGeluBackward, false>},
    {kSoftplus, "softplus", kUnary, backward_unary<kSoftplusBackward, false>},
    {kCast, "cast", kUnary, backward_cast},
    {kSqrtBackward, "sqrt_backward", kFromY, nullptr},
    {kReluBackward, "relu_backward", kFromY, nullptr},
    {kTanhBackward, "tanh_backward", kFromY, nullptr},
    {kSigmoidBackward, "sigmoid_backward", kFromY, nullptr},
    {kSquareBackward, "square_backward", kFromX, nullptr},
    {kAbsBackward, "abs_backward", kFromX, nullptr},
    {kGeluBackward, "gelu_backward", kFromX, nullptr},
    {kSoftplusBackward, "softplus_backward", kFromX, nullptr},
    {kGreaterEqualBackward, "greater_equal_backward", kFromBoth, nullptr},
    {kLessBackward, "less_backward", kFromBoth, nullptr},
}};

std::vector<OpInput> inputs_of(const Row& row) {
  const std::span names(row.operands.names, std::size_t(row.operands.count));
  std::vector<OpInput> inputs(names.begin(), names.end());
  if (row.code == kSelect) inputs[SelectInput::kCondition].types = DType::kU8;
  if (row.code == kCast) inputs[0].types = kAnyType;
  return inputs;
}

std::array<OpInfo, kEwCount> make_ops() {
  std::array<OpInfo, kEwCount> table;
  for (int i = 0; i < kEwCount; ++i) {
    const Row& row = kRows[i];
    OpInfo& op = table[i];
    op.name = row.name;
    op.inputs = inputs_of(row);
    if (row.code == kScale) op.attrs = ScaleAttrs{};
    if (row.code == kCast) op.attrs = CastAttrs{};
    op.code = i;
    op.infer = row.code == kSelect ? infer_select
               : row.code == kCast ? infer_cast
                                   : infer_arithmetic;
    op.backward = row.backward;
    op.gradient = row.backward ? GradientKind::kExact : GradientKind::kNone;
    for (int input = 0; input < row.operands.count; ++input) op.in_place.push_back({input, 0});
  }
  return table;
}

}  // namespace

const OpInfo& elementwise_op(EwCode code) {
  static const std::array<OpInfo, kEwCount> table = make_ops();
  return table[static_cast<std::size_t>(code)];
}

std::optional<EwCode> elementwise_code(const OpInfo& op) {
  if (op.code < 0 || op.code >= kEwCount) return std::nullopt;
  const EwCode code = static_cast<EwCode>(op.code);
  return &op == &elementwise_op(code) ? std::optional(code) : std::nullopt;
}

int arity(EwCode code) { return kRows[static_cast<std::size_t>(code)].operands.count; }

const OpInfo kFusedElementwise{.name = "fused_elementwise",
                               .inputs = {"operand"},
                               .attrs = FusedAttrs{},
                               .infer = infer_fused,
                               .in_place = {{0, 0}, {1, 0}, {2, 0}, {3, 0}}};

EwProgram program_of(const Node& node) {
  if (node.op == &kFusedElementwise) return node.attrs.as<FusedAttrs>().program;
  const EwCode code = elementwise_code(*node.op).value();
  EwStep step{.code = code, .scale = {}};
  for (int i = 0; i < arity(code); ++i) step.source[static_cast<std::size_t>(i)] = std::int16_t(i);
  if (code == kScale) step.scale = node.attrs.as<ScaleAttrs>();
  return {arity(code), {step}};
}

namespace ops {

Value elementwise(Graph& g, EwCode code, std::vector<Value> operands) {
  return g.add(elementwise_op(code), std::move(operands));
}

Value add(Graph& g, Value a, Value b) { return elementwise(g, kAdd, {a, b}); }
Value sub(Graph& g, Value a, Value b) { return elementwise(g, kSub, {a, b}); }
Value mul(Graph& g, Value a, Value b) { return elementwise(g, kMul, {a, b}); }
Value div(Graph& g, Value a, Value b) { return elementwise(g, kDiv, {a, b}); }
Value maximum(Graph& g, Value a, Value b) { return elementwise(g, kMaximum, {a, b}); }
Value minimum(Graph& g, Value a, Value b) { return elementwise(g, kMinimum, {a, b}); }
Value less(Graph& g, Value a, Value b) { return elementwise(g, kLess, {a, b}); }
Value equal(Graph& g, Value a, Value b) { return elementwise(g, kEqual, {a, b}); }
Value select(Graph& g, Value condition, Value a, Value b) {
  return elementwise(g, kSelect, {condition, a, b});
}
Value scale(Graph& g, Value x, double factor, double offset) {
  return g.add(elementwise_op(kScale), {x}, ScaleAttrs{factor, offset});
}
Value neg(Graph& g, Value x) { return elementwise(g, kNeg, {x}); }
Value square(Graph& g, Value x) { return elementwise(g, kSquare, {x}); }
Value sqrt(Graph& g, Value x) { return elementwise(g, kSqrt, {x}); }
Value exp(Graph& g, Value x) { return elementwise(g, kExp, {x}); }
Value log(Graph& g, Value x) { return elementwise(g, kLog, {x}); }
Value abs(Graph& g, Value x) { return elementwise(g, kAbs, {x}); }
Value relu(Graph& g, Value x) { return elementwise(g, kRelu, {x}); }
Value tanh(Graph& g, Value x) { return elementwise(g, kTanh, {x}); }
Value sigmoid(Graph& g, Value x) { return elementwise(g, kSigmoid, {x}); }
Value gelu(Graph& g, Value x) { return elementwise(g, kGelu, {x}); }
Value softplus(Graph& g, Value x) { return elementwise(g, kSoftplus, {x}); }
Value cast(Graph& g, Value x, DType dtype) {
  return g.add(elementwise_op(kCast), {x}, CastAttrs{dtype});
}

}  // namespace ops
}  // namespace keel
