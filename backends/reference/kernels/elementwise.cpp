// Element-wise ops and fused chains of them: the node's program, interpreted for every element.
#include "src/ops/elementwise.h"

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/walk.h"

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

}  // namespace

Prepared prepare_elementwise(const NodeContext& context) {
  const EwProgram program = program_of(context.node);
  return kernel_of([=](const Binding& b) { run(b, program); });
}

}  // namespace keel::reference
