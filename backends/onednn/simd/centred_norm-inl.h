// The frame of the column norms that subtract a mean and pass over the tensor twice, compiled once
// per instruction set: a norm adds its statistics. In, Out, BackIn and BackOut are its places.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_NORM_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_NORM_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_CENTRED_NORM_INL_H_
#endif

#include "backends/onednn/simd/centred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// Runs a forward: the moments, kinds 0 and 1, if it uses those of the batch; statistics(tile),
// which computes mean and the constants of a panel; y = (x - mean) * factor + shift;
// left_out(tile, y) for the rows that the mask leaves out.
template <class In, class Out, class Statistics, class LeftOut>
void run_centred(const Binding& b, const ColumnPlan& plan, bool uses_batch,
                 const Statistics& statistics, const LeftOut& left_out) {
  const RowMask mask = b.inputs[In::kMask].template as<std::uint8_t>();
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    const CentredForward<T> write{b.inputs[In::kX].template as<T>(),
                                  b.outputs[Out::kMean].template as<float>(),
                                  plan.constant(b.workspace, CentredForwardConstant::kFactor),
                                  plan.constant(b.workspace, CentredForwardConstant::kShift)};
    run_columns(
        plan.blocks,
        [&](std::size_t block, const Tile& tile) HWY_ATTR {
          const SumPlace at{b.workspace, block, 0};
          if (!uses_batch) return;
          if (plan.is_given) return take_moments(plan, at, b.inputs[In::kMoments], tile);
          tile_moments(tile, mask, write.x, moments_at(plan, at, tile.first));
        },
        statistics,
        [&](const Tile& tile) HWY_ATTR {
          const ResultRows y(b, tile.run_length());
          write_centred(tile, write, y);
          left_out(tile, y);
        });
  });
}

// A mean in two floats. `low` is the part that rounding to `high` loses; it matters where the mean
// is much larger than the deviations.
struct SplitMean {
  Floats high, low;
  explicit HWY_INLINE SplitMean(const WideDoubles& mean)
      : high(mean.floats()), low((mean - WideDoubles::of(high)).floats()) {}
  explicit HWY_INLINE SplitMean(Floats mean) : high(mean), low(zero()) {}
};

// The sums of a register of channels for their gradient, with the saved mean corrected by what
// rounding took off it: low = mean(xhat), dgain = sum of dy * xhat, dbias = sum of dy.
struct CentredSums {
  WideDoubles low, dgain, dbias;

  HWY_INLINE CentredSums(const Binding& b, const ColumnPlan& plan, std::size_t c,
                         const WideDoubles& share)
      : low(sum_of_blocks(plan, b.workspace, 0, c) * share),
        dgain(WideDoubles::zero()),
        dbias(sum_of_blocks(plan, b.workspace, 1, c)) {
    dgain = sum_of_blocks(plan, b.workspace, 2, c) - low * dbias;
  }
};

// The sums of a block: xhat, dy, dy * xhat, and with a fourth kind the dy of the rows left out.
template <class BackIn, class T>
void centred_gradient_sums(const Binding& b, const ColumnPlan& plan, std::size_t block,
                           const Tile& tile) {
  const SumPlace at{b.workspace, block, 0};
  if (plan.is_given) return take_gradient_sums(plan, at, b.inputs[BackIn::kSums], plan.sums, tile);
  const RowMask mask = b.inputs[BackIn::kMask].template as<std::uint8_t>();
  const SavedChannels<T> saved{
      b.inputs[BackIn::kX].template as<T>(), b.inputs[BackIn::kDy].template as<T>(),
      b.inputs[BackIn::kMean].template as<float>(), b.inputs[BackIn::kRstd].template as<float>()};
  tile_sums(tile, mask, saved, sums_at(plan, at, tile.first));
  if (mask == nullptr || plan.sums <= kPaddingDy) return;
  tile_left_out(tile, mask, saved.dy, plan.sum(b.workspace, block, kPaddingDy) + tile.first);
}

// The inputs of the last pass, with the constants that statistics(tile) computed.
template <class BackIn, class T>
CentredBackward<T> centred_gradient(const Binding& b, const ColumnPlan& plan) {
  using K = CentredBackwardConstant;
  const auto constant = [&](std::size_t kind) { return plan.constant(b.workspace, kind); };
  return {{b.inputs[BackIn::kMean].template as<float>(),
           b.inputs[BackIn::kRstd].template as<float>(), constant(K::kLow)},
          b.inputs[BackIn::kX].template as<T>(),
          b.inputs[BackIn::kDy].template as<T>(),
          constant(K::kScale),
          constant(K::kMeanDy),
          constant(K::kSlope)};
}

// Runs a backward: the sums; statistics(tile), which computes the constants of a panel from them;
// write(tile, in, dx) with those, a CentredBackward.
template <class BackIn, class Statistics, class Write>
void run_centred_backward(const Binding& b, const ColumnPlan& plan, const Statistics& statistics,
                          const Write& write) {
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    const CentredBackward<T> in = centred_gradient<BackIn, T>(b, plan);
    run_columns(
        plan.blocks,
        [&](std::size_t block, const Tile& tile)
            HWY_ATTR { centred_gradient_sums<BackIn, T>(b, plan, block, tile); },
        statistics,
        [&](const Tile& tile) HWY_ATTR { write(tile, in, ResultRows(b, tile.run_length())); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
