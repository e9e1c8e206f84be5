// Element-wise ops and fused chains of them: the node's program, interpreted for every element.
#include "src/ops/elementwise.h"

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/walk.h"
#include "src/core/bf16.h"

namespace keel::reference {
namespace {

double load(const TensorRef& t, std::int64_t offset) {
  double value = 0;
  with_element_type(t.type.dtype,
                    [&](auto element) { value = double(t.as<decltype(element)>()[offset]); });
  return value;
}

void store(const TensorRef& t, std::int64_t offset, double value) {
  with_element_type(t.type.dtype, [&](auto element) {
    using T = decltype(element);
    t.as<T>()[offset] = static_cast<T>(value);
  });
}

// Runs the steps on registers that begin with the operands; the last register is the result.
double interpret(const EwProgram& program, std::vector<double>& registers) {
  std::size_t next = std::size_t(program.inputs);
  for (const EwStep& step : program.steps) {
    std::array<double, 3> operands{};
    for (std::size_t i = 0; i < std::size_t(arity(step.code)); ++i) {
      operands[i] = registers[std::size_t(step.source[i])];
    }
    registers[next++] = evaluate(step.code, operands, step.scale);
  }
  return registers.back();
}

void run(const Binding& b, const EwProgram& program) {
  const TensorRef& y = b.outputs[0];
  std::vector<Strides> strides;
  for (const TensorRef& x : b.inputs) {
    strides.push_back(stretched_strides(x.type.shape, y.type.shape));
  }
  std::vector<double> registers(b.inputs.size() + program.steps.size());
  walk(y.type.shape, strides, [&](std::int64_t e, const auto& offsets) {
    for (std::size_t i = 0; i < b.inputs.size(); ++i) registers[i] = load(b.inputs[i], offsets[i]);
    store(y, e, interpret(program, registers));
  });
}

// A cast to bf16 rounds, though the result is stored as double.
void round_to_bf16(const Binding& b) {
  for (std::int64_t e = 0; e < b.outputs[0].elements(); ++e) {
    store(b.outputs[0], e, rounded_to_bf16(load(b.inputs[0], e)));
  }
}

}  // namespace

Prepared prepare_elementwise(const NodeContext& context) {
  const bool is_cast = context.node.op == &elementwise_op(EwCode::kCast);
  if (is_cast && context.output().dtype == DType::kBF16) return kernel_of(round_to_bf16);
  const EwProgram program = program_of(context.node);
  return kernel_of([=](const Binding& b) { run(b, program); });
}

}  // namespace keel::reference
