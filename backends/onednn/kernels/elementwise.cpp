// Element-wise programs. The output is cut into tiles, and every step of the program runs over one
// tile at a time. Intermediate results stay in L1; operands are read from memory directly, and the
// last step writes its result there directly.
#include "src/ops/elementwise.h"

#include <optional>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/broadcast.h"
#include "backends/onednn/kernels/elementwise_steps.h"
#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

using Form = Stretched::Form;

constexpr std::size_t kTile = 1024;  // floats
constexpr std::size_t kMaxTiles = 16;
// Rows at least this long are read where they lie; shorter ones are gathered into a tile first.
constexpr std::int64_t kLongRow = 128;

// How an operand reaches the steps of a tile.
enum class Access { kDirect, kScalar, kRow, kGathered };

struct Operand {
  Access access = Access::kDirect;
  DType dtype = DType::kF32;
  int tile = -1;  // kGathered
};

struct Step {
  EwStep step;
  int tile = -1;  // where its result goes; -1: to the output
};

struct Plan {
  Broadcast broadcast;
  std::vector<Operand> operands;
  std::vector<Step> steps;
  DType out = DType::kF32;
  std::int64_t tile = kTile;   // elements a pass
  bool stops_at_rows = false;  // a tile never crosses the end of a row
  int tiles = 0;
};

Access access_of(const Plan& plan, std::size_t i) {
  if (plan.operands[i].dtype != DType::kF32) return Access::kGathered;
  switch (plan.broadcast.operand(i).form) {
    case Form::kWhole:
      return Access::kDirect;
    case Form::kScalar:
      return Access::kScalar;
    case Form::kPart:
      break;
  }
  return plan.broadcast.inner() >= kLongRow ? Access::kRow : Access::kGathered;
}

// The step after which nobody reads a register any more; -1 if no step reads it.
int last_reader(const EwProgram& program, int reg) {
  for (int i = int(program.steps.size()) - 1; i >= 0; --i) {
    const EwStep& step = program.steps[std::size_t(i)];
    for (int s = 0; s < arity(step.code); ++s) {
      if (step.source[std::size_t(s)] == reg) return i;
    }
  }
  return -1;
}

// Gives every gathered operand a tile of its own, and every step's result one that is free by then.
void place(Plan& plan, const EwProgram& program) {
  std::vector<int> busy_until;  // of each tile: the last step that reads it
  const int steps = int(program.steps.size());
  for (Operand& operand : plan.operands) {
    if (operand.access != Access::kGathered) continue;
    operand.tile = int(busy_until.size());
    busy_until.push_back(steps);
  }
  for (int i = 0; i < steps; ++i) {
    Step step{program.steps[std::size_t(i)]};
    if (i + 1 < steps || plan.out != DType::kF32) {
      const auto free = std::ranges::find_if(busy_until, [i](int last) { return last <= i; });
      step.tile = int(free - busy_until.begin());
      if (free == busy_until.end()) busy_until.push_back(0);
      // The last step's result is read once more, when it is converted to the output.
      const int last = i + 1 < steps ? last_reader(program, program.inputs + i) : steps;
      busy_until[std::size_t(step.tile)] = last;
    }
    plan.steps.push_back(step);
  }
  plan.tiles = int(busy_until.size());
}

Plan make_plan(const NodeContext& context, const EwProgram& program) {
  std::vector<Shape> shapes;
  for (int i = 0; i < program.inputs; ++i) shapes.push_back(context.input(i).shape);
  Plan plan{Broadcast(context.output().shape, shapes), {}, {}};
  plan.out = context.output().dtype;
  for (int i = 0; i < program.inputs; ++i) {
    plan.operands.push_back({.dtype = context.input(i).dtype});
    const Access access = access_of(plan, std::size_t(i));
    plan.operands.back().access = access;
    plan.stops_at_rows |= access == Access::kRow;
  }
  place(plan, program);
  if (plan.tiles == 0) plan.tile = kBlockElements;
  return plan;
}

// One thread's work on a stretch of the output.
class Worker {
 public:
  Worker(const Plan& plan, const Binding& binding) : plan_(plan), binding_(binding) {
    for (std::size_t i = 0; i < plan.operands.size(); ++i) {
      if (plan.operands[i].access == Access::kScalar) repeat(i, 0);
    }
  }

  void run(std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      std::int64_t length = std::min(plan_.tile, end - begin);
      if (plan_.stops_at_rows) {
        const std::int64_t inner = plan_.broadcast.inner();
        length = std::min(length, inner - begin % inner);
      }
      run_tile(begin, length);
      begin += length;
    }
  }

 private:
  void run_tile(std::int64_t begin, std::int64_t length) {
    for (std::size_t i = 0; i < plan_.operands.size(); ++i) fetch(i, begin, length);
    std::size_t reg = plan_.operands.size();
    for (const Step& step : plan_.steps) {
      StepArgs args;
      for (int s = 0; s < arity(step.step.code); ++s) {
        args.source[s] = registers_[std::size_t(step.step.source[std::size_t(s)])];
      }
      const bool is_direct = step.tile < 0;
      args.out = is_direct ? binding_.outputs[0].as<float>() + begin : tile(step.tile);
      args.n = std::size_t(length);
      args.factor = float(step.step.scale.factor);
      args.offset = float(step.step.scale.offset);
      run_step(step.step.code, args);
      registers_[reg++] = {args.out, 1};
    }
    put_converted(registers_[reg - 1].data, begin, length);
  }

  // Stores the last step's result where the output is not float32.
  void put_converted(const float* from, std::int64_t begin, std::int64_t length) {
    const TensorRef& y = binding_.outputs[0];
    if (plan_.out == DType::kU8) std::copy_n(from, length, y.as<std::uint8_t>() + begin);
    if (plan_.out == DType::kBF16) round_to_bf16(from, y.as<BF16>() + begin, length);
  }

  // Makes register i hold the operand's elements for output elements [begin, begin + length).
  void fetch(std::size_t i, std::int64_t begin, std::int64_t length) {
    const Operand& operand = plan_.operands[i];
    const Stretched& stretched = plan_.broadcast.operand(i);
    const TensorRef& input = binding_.inputs[i];
    switch (operand.access) {
      case Access::kScalar:
        return;
      case Access::kDirect:
        registers_[i] = {input.as<float>() + begin, 1};
        return;
      case Access::kRow: {
        const std::int64_t offset = plan_.broadcast.offset(stretched, begin);
        if (stretched.step == 0) return repeat(i, offset);
        registers_[i] = {input.as<float>() + offset, 1};
        return;
      }
      case Access::kGathered:
        gather(i, begin, length);
        registers_[i] = {tile(operand.tile), 1};
        return;
    }
  }

  void gather(std::size_t i, std::int64_t begin, std::int64_t length) {
    const Operand& operand = plan_.operands[i];
    const Stretched& stretched = plan_.broadcast.operand(i);
    const TensorRef& input = binding_.inputs[i];
    float* to = tile(operand.tile);
    if (operand.dtype == DType::kU8) {
      plan_.broadcast.expand(stretched, input.as<std::uint8_t>(), begin, length, to);
    } else if (operand.dtype == DType::kBF16 && stretched.form == Form::kWhole) {
      widen_bf16(input.as<BF16>() + begin, to, length);
    } else if (operand.dtype == DType::kBF16) {
      plan_.broadcast.expand(stretched, input.as<BF16>(), begin, length, to);
    } else {
      plan_.broadcast.expand(stretched, input.as<float>(), begin, length, to);
    }
  }

  void repeat(std::size_t i, std::int64_t offset) {
    std::fill_n(repeated_[i], kMaxLanes, binding_.inputs[i].as<float>()[offset]);
    registers_[i] = {repeated_[i], 0};
  }

  float* tile(int index) { return tiles_[index]; }

  const Plan& plan_;
  const Binding& binding_;
  Stream registers_[kMostEwRegisters];
  alignas(kAlignment) float repeated_[kMostEwOperands][kMaxLanes];
  alignas(kAlignment) float tiles_[kMaxTiles][kTile];
};

void cast_range(const TensorRef& x, const TensorRef& y, std::int64_t begin, std::int64_t end) {
  const DType from = x.type.dtype, to = y.type.dtype;
  if (from == DType::kF32 && to == DType::kBF16) {
    return round_to_bf16(x.as<float>() + begin, y.as<BF16>() + begin, end - begin);
  }
  if (from == DType::kBF16 && to == DType::kF32) {
    return widen_bf16(x.as<BF16>() + begin, y.as<float>() + begin, end - begin);
  }
  convert(x.as<std::byte>() + begin * size_of(from), from, y.as<std::byte>() + begin * size_of(to),
          to, end - begin);
}

// Shares the elements of a result out among threads.
constexpr auto run_all = [](const Binding& b, const auto& run) {
  parallel_range(b.outputs[0].elements(), kBlockElements,
                 [&](std::int64_t begin, std::int64_t end) { run(b, begin, end); });
};

Prepared prepare_cast(const NodeContext&) {
  const auto cast = [](const Binding& b, std::int64_t begin, std::int64_t end) {
    cast_range(b.inputs[0], b.outputs[0], begin, end);
  };
  return element_kernel_of(cast, run_all);
}

}  // namespace

Prepared prepare_elementwise(const NodeContext& context) {
  if (context.node.op == &elementwise_op(EwCode::kCast)) return prepare_cast(context);
  const EwProgram program = program_of(context.node);
  if (!fits_kernels(program)) return refuse("a fused program of too many operands or steps");
  const Plan plan = make_plan(context, program);
  if (plan.tiles > int(kMaxTiles)) return refuse("a fused program of too many results at once");
  const auto run = [plan](const Binding& b, std::int64_t begin, std::int64_t end) {
    Worker(plan, b).run(begin, end);
  };
  return element_kernel_of(run, run_all);
}

}  // namespace keel::onednn
