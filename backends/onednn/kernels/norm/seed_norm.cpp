// SeeDNorm. The forward takes a row at a time. The backward first finds what an element must know
// of its row, then takes tiles.
#include "src/ops/norm/seed_norm.h"

#include <cmath>
#include <cstring>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/tile_plan.h"
#include "backends/onednn/workspace_parts.h"

#ifndef KEEL_SEED_NORM_SUMS  // this file is compiled once per instruction set
#define KEEL_SEED_NORM_SUMS
namespace keel::onednn {
namespace {

using In = SeedNormInput;
using Out = SeedNormOutput;
using BackIn = SeedNormBackwardInput;
using BackOut = SeedNormGradient;

// The sums of a column: of dy xhat, tanh(score) dy xhat and dscore x.
struct SeedSums {
  enum : std::size_t { kGain, kA, kB, kCount };
};
using SeedPlan = TilePlan<SeedSums::kCount, SeedSums::kCount>;

// The terms of a row in the gradient of its elements; tanh is that of the score.
struct RowFactors {
  float tanh, slope, dscore;
};

// A backward: its tensors, the factors of its rows, and what its tiles leave.
struct SeedBackward {
  const Binding& binding;
  const SeedPlan& plan;
  RowFactors* factors;
  void* sums;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/seed_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/math.h"
#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The parameters from a column on. Forward and backward have them in the same places.
struct Parameters {
  const float *gain, *a, *b;

  explicit Parameters(const Binding& binding, std::size_t column = 0)
      : gain(binding.inputs[In::kGain] ? binding.inputs[In::kGain].as<float>() + column : nullptr),
        a(binding.inputs[In::kA].as<float>() + column),
        b(binding.inputs[In::kB].as<float>() + column) {}
  // tanh a + gain.
  template <class Part>
  HWY_INLINE Floats weight(Part part, Floats tanh, std::size_t i) const {
    return hn::MulAdd(tanh, part.load(a + i), gain ? part.load(gain + i) : splat(1));
  }
};

// The sum of x b, whose terms may leave the range of a float though the sum does not.
template <class T>
HWY_NOINLINE double row_score_in_double(const T* x, const float* b, std::size_t n) {
  DoubleSum score;
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { score.add_product(part.load(x + i), part.load(b + i)); });
  return score.total();
}
template <class T>
HWY_INLINE double row_score(const T* x, const float* b, std::size_t n) {
  ChainedSum sum;
  for_runs(
      n,
      [&](auto part, std::size_t i, int chain)
          KEEL_LOOP_BODY { sum.add_product(chain, part.load(x + i), part.load(b + i)); },
      [&]() KEEL_LOOP_BODY { sum.end_run(); });
  const double score = sum.total();
  return std::isfinite(score) ? score : row_score_in_double(x, b, n);
}

template <class T>
void forward_rows(const Binding& b, double eps, const RowRange& range) {
  const Parameters of(b);
  const T* const x = b.inputs[In::kX].as<T>();
  const auto finish = [&](std::size_t row) HWY_ATTR {
    float& score = b.outputs[Out::kScore].as<float>()[row];
    score = float(row_score(x + row * range.width, of.b, range.width));
    return [of, t = tanh(splat(score))](Floats xhat, auto part, std::size_t i)
               KEEL_LOOP_BODY { return hn::Mul(xhat, of.weight(part, t, i)); };
  };
  write_scaled(
      ScaledRows<T>{x, b.outputs[Out::kRstd].as<float>(), ResultRows(b, range.width), range},
      inverse_rms(range.width, eps), finish);
}

// Writes y and saves rstd and the score.
void forward(const Binding& b, double eps, const RowRange& range) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR { forward_rows<T>(b, eps, range); });
}

template <class T>
RowFactors factors_of(const Binding& b, const Parameters& of, std::size_t row, std::size_t width) {
  const T* const x = b.inputs[BackIn::kX].as<T>() + row * width;
  const T* const dy = b.inputs[BackIn::kDy].as<T>() + row * width;
  const float rstd = b.inputs[BackIn::kRstd].as<float>()[row];
  const WithSlope t = tanh_and_slope(splat(b.inputs[BackIn::kScore].as<float>()[row]));
  ChainedSum of_g, of_a;
  for_runs(
      width,
      [&](auto part, std::size_t i, int chain) KEEL_LOOP_BODY {
        const Floats xhat = hn::Mul(part.load(x + i), splat(rstd)), dy_i = part.load(dy + i);
        of_g.add_product(chain, hn::Mul(dy_i, of.weight(part, t.value, i)), xhat);
        of_a.add_product(chain, hn::Mul(dy_i, part.load(of.a + i)), xhat);
      },
      [&]() KEEL_LOOP_BODY {
        of_g.end_run();
        of_a.end_run();
      });
  return {hn::GetLane(t.value), float(of_g.total() / double(width)),
          float(hn::GetLane(t.slope) * of_a.total())};
}

void find_factors(const SeedBackward& of_node, const RowRange& range) {
  const Binding& b = of_node.binding;
  const Parameters of(b);
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    for (std::size_t row = range.first; row < range.last; ++row) {
      of_node.factors[row] = factors_of<T>(b, of, row, range.width);
    }
  });
}

// Writes dx of kRows rows of a tile from `row` on and adds their terms to the sums.
template <class T, std::size_t kRows>
void take_rows(const SeedBackward& of_node, const GradientTile& tile, std::size_t row,
               BlockSums& sums) {
  const Binding& b = of_node.binding;
  const std::size_t width = of_node.plan.width();
  const std::size_t at = row * width + tile.column;
  const T *const x = b.inputs[BackIn::kX].as<T>() + at, *const dy =
                                                            b.inputs[BackIn::kDy].as<T>() + at;
  const Parameters of(b, tile.column);
  const float* const rstds = b.inputs[BackIn::kRstd].as<float>() + row;
  const RowFactors* const rows = of_node.factors + row;
  with_put(ResultRows(b, width).from(at), [&](auto put) KEEL_LOOP_BODY {
    for_lanes(tile.rows.width, [=, &sums](auto part, std::size_t i) KEEL_LOOP_BODY {
      const Floats b_i = part.load(of.b + i);
      Floats dgain = zero(), da = zero(), db = zero();
      unrolled<kRows>([&](std::size_t k) KEEL_LOOP_BODY {
        const std::size_t e = k * width + i;
        const Floats x_e = part.load(x + e), dy_e = part.load(dy + e), t = splat(rows[k].tanh);
        const Floats rstd = splat(rstds[k]), xhat = hn::Mul(x_e, rstd);
        const Floats g = hn::Mul(dy_e, of.weight(part, t, i)), dscore = splat(rows[k].dscore);
        const Floats own = hn::Mul(rstd, hn::NegMulAdd(xhat, splat(rows[k].slope), g));
        put(part, hn::MulAdd(dscore, b_i, own), e);
        const Floats product = hn::Mul(dy_e, xhat);
        dgain = hn::Add(dgain, product);
        da = hn::MulAdd(t, product, da);
        db = hn::MulAdd(dscore, x_e, db);
      });
      const auto add_up = [&](std::size_t kind, Floats terms) KEEL_LOOP_BODY {
        float* const to = sums.run(kind) + i;
        part.store(hn::Add(part.load(to), terms), to);
      };
      add_up(SeedSums::kGain, dgain);
      add_up(SeedSums::kA, da);
      add_up(SeedSums::kB, db);
    });
  });
  sums.end_addition();
}

// Stores the gradients of the parameters, of columns that a panel's blocks have sums of.
void store_columns(const Binding& b, std::size_t first, std::size_t n, const ColumnSums& sums,
                   double* memory) {
  const auto store = [&](std::size_t kind, const TensorRef& out) HWY_ATTR {
    if (out) sum_over_blocks(sums, memory, kind, out.as<float>() + first, n);
  };
  store(SeedSums::kGain, b.outputs[BackOut::kDgain]);
  store(SeedSums::kA, b.outputs[BackOut::kDa]);
  store(SeedSums::kB, b.outputs[BackOut::kDb]);
}

// Writes dx of a tile and leaves its sums.
void backward(const SeedBackward& of, const GradientTile& tile) {
  HWY_ALIGN double memory[SeedPlan::kMemory];
  BlockSums sums(of.plan.tile_sums(), memory, 0);
  with_elements(of.binding.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    for_row_groups(tile.rows, [&](auto rows, std::size_t row)
                                  HWY_ATTR { take_rows<T, rows()>(of, tile, row, sums); });
  });
  sums.end_run();
  of.plan.leave(of.sums, tile, memory);
  if (!of.plan.is_one_block()) return;
  store_columns(of.binding, tile.column, tile.rows.width, of.plan.tile_sums(), memory);
}

void add_up(const SeedBackward& of) {
  of.plan.each_panel(of.sums,
                     [&](std::size_t first, std::size_t n, const ColumnSums& sums, double* memory)
                         HWY_ATTR { store_columns(of.binding, first, n, sums, memory); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(find_factors);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);

Prepared prepare_seed_norm(const NodeContext& context) {
  const auto attrs = context.attrs<SeedNormAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(row_sizes(context.input(In::kX).shape, attrs.axes));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.eps, range);
  });
}

Prepared prepare_seed_norm_backward(const NodeContext& context) {
  const RowSizes sizes =
      row_sizes(context.input(BackIn::kX).shape, context.attrs<SeedNormAttrs>().axes);
  const RowBlocks blocks = independent_row_blocks(sizes);
  const SeedPlan plan(sizes);
  const auto run = [=](const Binding& b) {
    WorkspaceParts parts(b.workspace);
    const SeedBackward of{b, plan, parts.take<RowFactors>(std::size_t(sizes.rows)),
                          parts.take<std::byte>(std::size_t(plan.bytes()))};
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(find_factors)(of, range);
    });
    plan.run([&](const GradientTile& tile) { HWY_DYNAMIC_DISPATCH(backward)(of, tile); });
    if (!plan.is_one_block()) HWY_DYNAMIC_DISPATCH(add_up)(of);
  };
  WorkspaceParts parts;
  parts.take<RowFactors>(std::size_t(sizes.rows));
  parts.take<std::byte>(std::size_t(plan.bytes()));
  return kernel_of(run, parts.bytes());
}

}  // namespace keel::onednn
#endif
