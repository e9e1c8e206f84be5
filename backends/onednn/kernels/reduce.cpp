// Sums, means and maxima over axes as a chain of stages, each over one run of axes; the gradient of
// max; stretching back.
#include "src/ops/reduce.h"

#include <cstring>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/broadcast.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/reduce_kernels.h"
#include "src/core/with_type.h"

namespace keel::onednn {
namespace {

constexpr std::int64_t kChunk = 2048;  // columns accumulated together: 16 KiB of doubles

// x (outer, reduced, inner) -> y (outer, blocks, inner): every `block` elements along the middle
// axis together. What is left of the axis is for the next stage.
struct Stage {
  std::int64_t outer, reduced, inner, block;

  std::int64_t blocks() const { return reduced == 0 ? 1 : (reduced + block - 1) / block; }
  std::int64_t chunks() const { return (inner + kChunk - 1) / kChunk; }
  std::int64_t results() const { return outer * blocks() * inner; }
};

// Cut so that a block is worth a thread's while, only by sizes.
Stage make_stage(std::int64_t outer, std::int64_t reduced, std::int64_t inner) {
  Stage stage{outer, reduced, inner, std::max<std::int64_t>(reduced, 1)};
  const std::int64_t width = std::clamp<std::int64_t>(inner, 1, kChunk);
  const std::int64_t block = std::max<std::int64_t>(64, 4 * kBlockElements / width);
  const bool is_enough_work = outer * stage.chunks() >= 64;
  if (!is_enough_work && reduced > block) stage.block = block;
  return stage;
}

// The reduced axes of x, innermost first. A run of axes between kept ones is one stage, or several
// when it is long.
std::vector<Stage> make_stages(const Shape& x, const std::vector<std::int64_t>& axes) {
  std::vector<Stage> stages;
  std::int64_t inner = 1;
  for (int axis = x.rank() - 1; axis >= 0;) {
    std::int64_t reduced = 1;
    int first = axis;
    while (first >= 0 && std::ranges::find(axes, first) != axes.end()) reduced *= x[first--];
    if (first == axis) {
      inner *= x[axis--];
      continue;
    }
    axis = first;
    const std::int64_t outer = x.elements(0, axis + 1);
    while (reduced != 1) {
      stages.push_back(make_stage(outer, reduced, inner));
      reduced = stages.back().blocks();
    }
  }
  if (stages.empty()) stages.push_back(make_stage(1, 1, x.elements()));
  return stages;
}

struct Plan {
  Reduction op;
  double count;  // the last stage divides by it
  std::vector<Stage> stages;
};

// One stage's unit: block `block` of outer index `outer`, columns [column, column + width).
template <class From>
void reduce_unit(Reduction op, const Stage& stage, const From* x, std::int64_t unit,
                 double* results) {
  const std::int64_t column = unit % stage.chunks() * kChunk;
  const std::int64_t block = unit / stage.chunks() % stage.blocks();
  const std::int64_t outer = unit / stage.chunks() / stage.blocks();
  const std::int64_t first = block * stage.block;
  const std::int64_t rows = std::min(stage.block, stage.reduced - first);
  const From* from = x + (outer * stage.reduced + first) * stage.inner + column;
  if (stage.inner == 1) {
    *results = reduce_row(op, from, rows);
  } else {
    const std::int64_t width = std::min(kChunk, stage.inner - column);
    reduce_columns(op, Panel<From>{from, rows, width, stage.inner}, results);
  }
}

template <class From, class To>
void run_stage(const Plan& plan, const Stage& stage, const From* x, To* y) {
  const double count = std::is_same_v<To, float> ? plan.count : 1;
  const std::int64_t chunks = stage.chunks();
  const std::int64_t elements = stage.block * std::min(stage.inner, kChunk);
  const std::int64_t units = stage.outer * stage.blocks() * chunks;
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(1, elements));
  parallel_range(units, at_once, [&](std::int64_t begin, std::int64_t end) {
    double results[kChunk];
    for (std::int64_t unit = begin; unit < end; ++unit) {
      reduce_unit(plan.op, stage, x, unit, results);
      const std::int64_t column = unit % chunks * kChunk;
      const std::int64_t width = std::min(kChunk, stage.inner - column);
      To* to = y + unit / chunks * stage.inner + column;
      for (std::int64_t i = 0; i < width; ++i) to[i] = To(results[i] / count);
    }
  });
}

void reduce(const Binding& b, const Plan& plan) {
  const float* x = b.inputs[0].as<float>();
  float* y = b.outputs[0].as<float>();
  const std::size_t last = plan.stages.size() - 1;
  if (last == 0) return run_stage(plan, plan.stages[0], x, y);
  double* to = static_cast<double*>(b.workspace);
  run_stage(plan, plan.stages[0], x, to);
  for (std::size_t i = 1; i < last; ++i) {
    const double* from = to;
    to += plan.stages[i - 1].results();
    run_stage(plan, plan.stages[i], from, to);
  }
  run_stage(plan, plan.stages[last], static_cast<const double*>(to), y);
}

// dx = dy at the first element of x that equals y, 0 elsewhere. `x` is the output's place, y and dy
// the stretched operand; `found` has a byte for each element of y.
struct MaxBackward {
  const float *dy, *x, *y;
  float* dx;
  std::uint8_t* found;

  // A row of x that belongs to one element of y.
  void row(std::int64_t begin, std::int64_t n, std::int64_t place) const {
    std::fill_n(dx + begin, n, 0.0f);
    if (found[place]) return;
    const auto at = std::find(x + begin, x + begin + n, y[place]);
    if (at == x + begin + n) return;
    dx[at - x] = dy[place];
    found[place] = 1;
  }

  // A row of x beside as many elements of y.
  void columns(std::int64_t begin, std::int64_t n, std::int64_t place) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const bool is_first = x[begin + i] == y[place + i] && !found[place + i];
      dx[begin + i] = is_first ? dy[place + i] : 0.0f;
      found[place + i] |= std::uint8_t(is_first);
    }
  }
};

// Blocks along the outermost axis are independent when y has that axis too.
void max_backward(const Binding& b, const Broadcast& shapes) {
  using In = MaxBackwardInput;
  const TensorRef &dy = b.inputs[In::kDy], &x = b.inputs[In::kX], &y = b.inputs[In::kY];
  const Stretched& operand = shapes.operand(0);
  const std::int64_t inner = shapes.inner();
  const bool is_divisible = shapes.leading() > 1 && operand.outer[0] > 0;
  const std::int64_t blocks = is_divisible ? shapes.leading() : 1;
  const std::int64_t rows = x.elements() / inner / blocks, places = y.elements() / blocks;
  const MaxBackward task{dy.as<float>(), x.as<float>(), y.as<float>(), b.outputs[0].as<float>(),
                         static_cast<std::uint8_t*>(b.workspace)};
  parallel_blocks(blocks, [&](std::int64_t block) {
    std::memset(task.found + block * places, 0, std::size_t(places));
    for (std::int64_t row = block * rows; row < (block + 1) * rows; ++row) {
      const std::int64_t place = shapes.offset(operand, row * inner);
      operand.step == 0 ? task.row(row * inner, inner, place)
                        : task.columns(row * inner, inner, place);
    }
  });
}

template <class T>
void stretch(const Binding& b, const Broadcast& broadcast) {
  const T* x = b.inputs[0].as<T>();
  T* y = b.outputs[0].as<T>();
  parallel_range(b.outputs[0].elements(), kBlockElements,
                 [&](std::int64_t begin, std::int64_t end) {
                   broadcast.expand(broadcast.operand(0), x, begin, end - begin, y + begin);
                 });
}

}  // namespace

Prepared prepare_reduce(const NodeContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t results = context.output().shape.elements();
  Plan plan{Reduction::kSum, 1, make_stages(x, context.attrs<ReduceAttrs>().axes)};
  if (context.node.op == &kMax) plan.op = Reduction::kMax;
  if (context.node.op == &kMean) plan.count = double(x.elements()) / double(results);
  std::int64_t workspace = 0;
  for (std::size_t i = 0; i + 1 < plan.stages.size(); ++i) workspace += plan.stages[i].results();
  return kernel_of([plan](const Binding& b) { reduce(b, plan); },
                   workspace * std::int64_t(sizeof(double)));
}

Prepared prepare_max_backward(const NodeContext& context) {
  const Shape& y = context.input(MaxBackwardInput::kY).shape;
  const Broadcast shapes(context.input(MaxBackwardInput::kX).shape, {y});
  return kernel_of([shapes](const Binding& b) { max_backward(b, shapes); }, y.elements());
}

Prepared prepare_broadcast_to(const NodeContext& context) {
  const Broadcast broadcast(context.output().shape, {context.input(0).shape});
  Prepared prepared;
  with_type<float, std::int32_t, std::uint8_t>(context.output().dtype, [&](auto element) {
    using T = decltype(element);
    prepared = kernel_of([broadcast](const Binding& b) { stretch<T>(b, broadcast); });
  });
  return prepared;
}

}  // namespace keel::onednn
