// Element-wise programs: every thread runs all steps on its own elements, on four where operands
// allow it. The file also has casts, and copies from a step's result to the leaf that it becomes.
#include <algorithm>

#include "backends/cuda/kernels/elementwise_step.cuh"
#include "backends/cuda/kernels/index.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strided.cuh"
#include "src/core/bf16.h"
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

constexpr int kFour = 4;  // elements that a thread computes at a time, where operands allow it

struct DeviceProgram {
  int operands = 0, steps = 0;
  DeviceStep step[kMostEwSteps];
  Extent extent;  // of the output, in as few axes as all operands allow
  Steps from[kMostEwOperands];
  bool is_whole[kMostEwOperands];  // laid out like the output
  bool is_byte[kMostEwOperands];
  bool writes_bytes = false;
  bool is_in_fours = false;  // four neighbours of y are four, or one element, of each x
};

struct Operands {
  Global<const float> floats[kMostEwOperands];
  Global<const std::uint8_t> bytes[kMostEwOperands];
};

struct Results {
  Global<float> floats;
  Global<std::uint8_t> bytes;
  std::int64_t elements;
};

template <class Index>
__device__ Index place_of(const DeviceProgram& program, int operand, Index e) {
  if (program.is_whole[operand]) return e;
  const Steps& steps = program.from[operand];
  Index offset = 0;
  for (int axis = program.extent.rank - 1; axis > 0; --axis) {
    const Index size = Index(program.extent.sizes[axis]), rest = e / size;
    offset += (e - rest * size) * Index(steps.along[axis]);
    e = rest;
  }
  return offset + e * Index(steps.along[0]);
}

template <int kCount, class Index>
__device__ Several<kCount> read_operand(const DeviceProgram& program, const Operands& in,
                                        int operand, Index e) {
  const Index at = place_of(program, operand, e);
  const int last = program.extent.rank - 1;
  const bool is_one = kCount > 1 && program.from[operand].along[last] == 0;
  Several<kCount> result;
  if (kCount == kFour && !program.is_byte[operand] && !is_one) {
    const float4 four = in.floats[operand].load4(at);
    const float values[] = {four.x, four.y, four.z, four.w};
    for (int i = 0; i < kCount; ++i) result.at[i] = values[i];
    return result;
  }
  for (int i = 0; i < kCount; ++i) {
    const Index own = is_one ? at : at + i;
    result.at[i] =
        program.is_byte[operand] ? float(in.bytes[operand][own]) : in.floats[operand][own];
  }
  return result;
}

template <int kCount, class Index>
__device__ void write_results(const DeviceProgram& program, const Results& y, Index e,
                              const Several<kCount>& value) {
  if (program.writes_bytes) {
    for (int i = 0; i < kCount; ++i) y.bytes[e + i] = static_cast<std::uint8_t>(value.at[i]);
  } else if constexpr (kCount == kFour) {
    y.floats.store4(e, make_float4(value.at[0], value.at[1], value.at[2], value.at[3]));
  } else {
    y.floats[e] = value.at[0];
  }
}

template <int kCount>
__device__ Several<kCount> run_step(const DeviceStep& step, const Several<kCount>& a,
                                    const Several<kCount>& b, const Several<kCount>& c) {
  if (step.is_unary) return run_unary(step.code, a, step.factor, step.offset);
  return step.is_backward ? run_backward(step.code, a, b, c) : run_binary(step.code, a, b, c);
}

// Programs of one step, which need no array of values: its operands are those of the program.
template <int kCount, class Index>
__global__ void run_one_step(DeviceProgram program, Operands in, Results y) {
  const DeviceStep& step = program.step[0];
  const Index stride = kCount * Index(grid_threads());
  for (Index e = kCount * Index(grid_thread()); e < y.elements; e += stride) {
    const auto a = read_operand<kCount>(program, in, step.source[0], e);
    auto b = a, c = a;
    if (step.source[1] >= 0) b = read_operand<kCount>(program, in, step.source[1], e);
    if (step.source[2] >= 0) c = read_operand<kCount>(program, in, step.source[2], e);
    write_results(program, y, e, run_step(step, a, b, c));
  }
}

template <int kCount, class Index>
__global__ void run_program(DeviceProgram program, Operands in, Results y) {
  Several<kCount> values[kMostEwRegisters];
  const Index stride = kCount * Index(grid_threads());
  for (Index e = kCount * Index(grid_thread()); e < y.elements; e += stride) {
    for (int i = 0; i < program.operands; ++i) {
      values[i] = read_operand<kCount>(program, in, i, e);
    }
    Several<kCount>* next = values + program.operands;
    for (int s = 0; s < program.steps; ++s) {
      const DeviceStep& step = program.step[s];
      const auto& a = values[step.source[0]];
      const auto& b = step.source[1] < 0 ? a : values[step.source[1]];
      const auto& c = step.source[2] < 0 ? a : values[step.source[2]];
      *next++ = run_step(step, a, b, c);
    }
    write_results(program, y, e, next[-1]);
  }
}

// Joins axes that are one for every operand, and leaves out those of one element.
void merge_axes(DeviceProgram& program) {
  Extent merged;
  Steps from[kMostEwOperands];
  for (int axis = 0; axis < program.extent.rank; ++axis) {
    const std::int64_t size = program.extent.sizes[axis];
    if (size == 1) continue;
    int to = merged.rank - 1;
    bool joins = to >= 0;
    for (int i = 0; i < program.operands && joins; ++i) {
      joins = from[i].along[to] == size * program.from[i].along[axis];
    }
    if (!joins) to = merged.rank++;
    merged.sizes[to] = joins ? merged.sizes[to] * size : size;
    for (int i = 0; i < program.operands; ++i) from[i].along[to] = program.from[i].along[axis];
  }
  if (merged.rank == 0) merged.sizes[merged.rank++] = 1;
  program.extent = merged;
  std::ranges::copy(from, program.from);
}

// Whether each operand has four neighbours of the output as neighbours, at a multiple of four, or
// as one element.
bool fits_fours(const DeviceProgram& program) {
  const int last = program.extent.rank - 1;
  if (program.extent.sizes[last] % kFour != 0) return false;
  for (int i = 0; i < program.operands; ++i) {
    const Steps& steps = program.from[i];
    if (steps.along[last] == 0) continue;
    if (steps.along[last] != 1) return false;
    for (int axis = 0; axis < last; ++axis) {
      if (steps.along[axis] % kFour != 0) return false;
    }
  }
  return true;
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
  merge_axes(made);
  made.is_in_fours = fits_fours(made);
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

void start(const DeviceProgram& program, const Operands& in, const Results& y) {
  const bool is_one_step = program.steps == 1;
  if (y.elements > most_short_elements) {
    launch(run_program<1, std::int64_t>, one_thread_each(y.elements), program, in, y);
  } else if (program.is_in_fours) {
    launch(is_one_step ? run_one_step<kFour, std::int32_t> : run_program<kFour, std::int32_t>,
           one_thread_each(y.elements / kFour), program, in, y);
  } else {
    launch(is_one_step ? run_one_step<1, std::int32_t> : run_program<1, std::int32_t>,
           one_thread_each(y.elements), program, in, y);
  }
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
  Results y{{}, {}, b.outputs[0].elements()};
  if (program.writes_bytes) {
    y.bytes = global<std::uint8_t>(b.outputs[0]);
  } else {
    y.floats = output(b.outputs[0]);
  }
  start(program, in, y);
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

// bf16 is rounded from float32, and becomes float32.
Prepared prepare_narrow_cast(DType from, DType to) {
  if (from == DType::kF32) return kernel_of(cast<float, BF16>);
  if (to == DType::kF32) return kernel_of(cast<BF16, float>);
  return refuse("casts bf16 from and to f32 only");
}

Prepared prepare_cast(DType from, DType to) {
  if (from == DType::kBF16 || to == DType::kBF16) return prepare_narrow_cast(from, to);
  Prepared prepared;
  with_element_type(from, [&](auto x) {
    with_element_type(to, [&](auto y) { prepared = kernel_of(cast<decltype(x), decltype(y)>); });
  });
  return prepared;
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

}  // namespace keel::cuda
