// The frame of the un-centred column norms that pass over the tensor twice, compiled once per
// instruction set: a norm adds its statistics. In, Out, BackIn and BackOut are its places.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_NORM_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_NORM_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_UNCENTRED_NORM_INL_H_
#endif

#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The two passes of a forward: the sums of squares, kind 0, in training;
// y = x * rstd * gain + bias.
template <class In, class Out, class T>
struct UncentredForwardPasses {
  const Binding& b;
  const ColumnPlan& plan;
  bool training;
  const float* gain;  // (channels), or null

  RowMask mask() const { return b.inputs[In::kMask].template as<std::uint8_t>(); }
  const T* x() const { return b.inputs[In::kX].template as<T>(); }

  void sum(std::size_t block, const Tile& tile) const {
    if (!training) return;
    if (plan.is_given) {
      return take_squares(plan, {b.workspace, block, 0}, b.inputs[In::kSquares], tile);
    }
    tile_squares(tile, x(), mask(), plan.sum(b.workspace, block, 0) + tile.first);
  }
  void write(const Tile& tile) const {
    write_forward(tile,
                  UncentredForward<T>{x(), b.outputs[Out::kRstd].template as<float>(), gain,
                                      b.inputs[In::kBias].template as<float>(),
                                      ResultRows(b, plan.blocks.run_length())},
                  mask());
  }
};

// Runs a forward; statistics(tile) computes rstd of a panel from its sums.
template <class In, class Out, class Statistics>
void run_uncentred(const Binding& b, const ColumnPlan& plan, bool training, const float* gain,
                   const Statistics& statistics) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    const UncentredForwardPasses<In, Out, T> passes{b, plan, training, gain};
    run_columns(
        plan.blocks, [&](std::size_t block, const Tile& tile) HWY_ATTR { passes.sum(block, tile); },
        statistics, [&](const Tile& tile) HWY_ATTR { passes.write(tile); });
  });
}

// Runs a backward: the sums of dy, kind 0, and of dy * x * rstd, kind 1; statistics(tile), which
// computes slope and gain of a panel from them; dx = rstd * (dy * gain - x * rstd * slope).
template <class BackIn, class Statistics>
void run_uncentred_backward(const Binding& b, const ColumnPlan& plan, const float* slope,
                            const float* gain, const Statistics& statistics) {
  const RowMask mask = b.inputs[BackIn::kMask].template as<std::uint8_t>();
  const float* const rstd = b.inputs[BackIn::kRstd].template as<float>();
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    const UncentredGradient<T> in{b.inputs[BackIn::kX].template as<T>(),
                                  b.inputs[BackIn::kDy].template as<T>(), rstd};
    const UncentredBackward<T> write{in, rstd, slope, gain,
                                     ResultRows(b, plan.blocks.run_length())};
    run_columns(
        plan.blocks,
        [&](std::size_t block, const Tile& tile) HWY_ATTR {
          if (plan.is_given) {
            return take_gradients(plan, {b.workspace, block, 0}, b.inputs[BackIn::kSums], tile);
          }
          tile_gradient_sums(tile, in, mask,
                             {plan.sum(b.workspace, block, 0) + tile.first,
                              plan.sum(b.workspace, block, 1) + tile.first});
        },
        statistics, [&](const Tile& tile) HWY_ATTR { write_backward(tile, write, mask); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
