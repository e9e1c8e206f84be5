// Element-wise programs: every thread runs all steps on its own element, in registers. The file
// also has casts, and copies from a step's result to the leaf that it becomes.
#include "backends/cuda/kernels/elementwise_step.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strided.cuh"
#include "src/core/with_type.h"
#include "src/ops/elementwise.h"

namespace keel::cuda {
namespace {

struct DeviceStep {
  EwCode code;
  bool is_unary, is_backward;
  signed char source[3];
  float factor, offset;
};

struct DeviceProgram {
  int operands = 0, steps = 0;
  DeviceStep step[kMostEwSteps];
  Extent extent;
  Steps from[kMostEwOperands];
  bool is_whole[kMostEwOperands];  // laid out like the output
  bool is_byte[kMostEwOperands];
  bool writes_bytes = false;
};

struct Operands {
  Global<const float> floats[kMostEwOperands];
  Global<const std::uint8_t> bytes[kMostEwOperands];
};

__device__ float run_step(const DeviceStep& step, const float* registers) {
  const float a = registers[step.source[0]];
  if (step.is_unary) return run_unary(step.code, a, step.factor, step.offset);
  const float b = registers[step.source[1]];
  const float c = step.source[2] < 0 ? 0 : registers[step.source[2]];
  return step.is_backward ? run_backward(step.code, a, b, c) : run_binary(step.code, a, b, c);
}

__global__ void run_program(DeviceProgram program, Operands in, Global<float> y,
                            Global<std::uint8_t> y_bytes, std::int64_t elements) {
  float registers[kMostEwRegisters];
  for (std::int64_t e = grid_thread(); e < elements; e += grid_threads()) {
    for (int i = 0; i < program.operands; ++i) {
      const std::int64_t at = program.is_whole[i] ? e : place(program.extent, program.from[i], e);
      registers[i] = program.is_byte[i] ? float(in.bytes[i][at]) : in.floats[i][at];
    }
    float* next = registers + program.operands;
    for (int s = 0; s < program.steps; ++s) *next++ = run_step(program.step[s], registers);
    if (program.writes_bytes) {
      y_bytes[e] = static_cast<std::uint8_t>(next[-1]);
    } else {
      y[e] = next[-1];
    }
  }
}

DeviceProgram make_program(const NodeContext& context, const EwProgram& program) {
  DeviceProgram made;
  made.operands = program.inputs;
  made.steps = int(program.steps.size());
  const Shape& out = context.output().shape;
  made.extent = extent(out);
  made.writes_bytes = context.output().dtype == DType::kU8;
  for (int i = 0; i < program.inputs; ++i) {
    made.from[i] = stretched(context.input(i).shape, out);
    made.is_whole[i] = context.input(i).shape == out;
    made.is_byte[i] = context.input(i).dtype == DType::kU8;
  }
  for (int s = 0; s < made.steps; ++s) {
    const EwStep& step = program.steps[std::size_t(s)];
    DeviceStep& to = made.step[s];
    to = {step.code,    arity(step.code) == 1,    step.code >= EwCode::kSqrtBackward,
          {-1, -1, -1}, float(step.scale.factor), float(step.scale.offset)};
    for (int i = 0; i < arity(step.code); ++i) {
      to.source[i] = static_cast<signed char>(step.source[std::size_t(i)]);
    }
  }
  return made;
}

void run(const Binding& b, const DeviceProgram& program) {
  Operands in;
  for (int i = 0; i < program.operands; ++i) {
    const TensorRef& operand = b.inputs[std::size_t(i)];
    if (program.is_byte[i]) {
      in.bytes[i] = global<const std::uint8_t>(operand);
    } else {
      in.floats[i] = input(operand);
    }
  }
  const TensorRef& y = b.outputs[0];
  const std::int64_t elements = y.elements();
  const auto floats = program.writes_bytes ? Global<float>() : output(y);
  const auto bytes = program.writes_bytes ? global<std::uint8_t>(y) : Global<std::uint8_t>();
  launch(run_program, one_thread_each(elements), program, in, floats, bytes, elements);
}

template <class From, class To>
__global__ void convert(Global<const From> x, Global<To> y) {
  for (std::int64_t e = grid_thread(); e < y.size(); e += grid_threads()) {
    y[e] = static_cast<To>(x[e]);
  }
}

template <class From, class To>
void cast(const Binding& b) {
  const TensorRef& y = b.outputs[0];
  launch(convert<From, To>, one_thread_each(y.elements()), global<const From>(b.inputs[0]),
         global<To>(y));
}

template <class F>
void with_element_type(DType dtype, F f) {
  with_type<float, std::int32_t, std::uint8_t>(dtype, f);
}

Prepared prepare_cast(DType from, DType to) {
  Prepared prepared;
  with_element_type(from, [&](auto x) {
    with_element_type(to, [&](auto y) { prepared = kernel_of(cast<decltype(x), decltype(y)>); });
  });
  return prepared;
}

template <class T>
__global__ void copy_if_finite(Global<const T> src, Global<T> dst, Global<const float> guard) {
  if (!isfinite(guard[0])) return;
  for (std::int64_t e = grid_thread(); e < dst.size(); e += grid_threads()) dst[e] = src[e];
}

}  // namespace

Prepared prepare_elementwise(const NodeContext& context) {
  if (context.node.op == &elementwise_op(EwCode::kCast)) {
    return prepare_cast(context.input(0).dtype, context.output().dtype);
  }
  const EwProgram program = program_of(context.node);
  if (!fits_kernels(program)) return refuse("a fused program of too many operands or steps");
  return kernel_of([made = make_program(context, program)](const Binding& b) { run(b, made); });
}

void copy_guarded(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) {
  if (!guard) {
    return current_device().copy(dst.as<std::byte>(), src.as<const std::byte>(), dst.type.bytes());
  }
  // The bytes of any type, four at a time where its elements are made of fours.
  const Grid grid = one_thread_each(dst.elements());
  if (size_of(dst.type.dtype) % 4 == 0) {
    launch(copy_if_finite<std::uint32_t>, grid, global<const std::uint32_t>(src),
           global<std::uint32_t>(dst), input(guard));
  } else {
    launch(copy_if_finite<std::uint8_t>, grid, global<const std::uint8_t>(src),
           global<std::uint8_t>(dst), input(guard));
  }
}

}  // namespace keel::cuda
