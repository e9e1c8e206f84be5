// Sums over the rows of a matrix, one a column (dgain, dbias, ...), compiled once per instruction
// set. Terms are summed in float over a short run of rows, then in double, block by block.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_SUMS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_SUMS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_COLUMN_SUMS_INL_H_
#endif

#include <algorithm>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The sums of one block while its rows are being visited.
class BlockSums {
 public:
  explicit BlockSums(const ColumnSums& sums, void* workspace, std::size_t block)
      : stride_(sums.stride),
        n_(sums.count * sums.stride),
        total_(sums.total(workspace, block)),
        run_(sums.run(workspace, block)) {
    std::fill_n(total_, n_, 0.0);
    std::fill_n(run_, n_, 0.0f);
  }

  // Sum k of every column over the current run, for callers to add to; padding may hold anything.
  HWY_INLINE float* run(std::size_t k) const { return run_ + k * stride_; }

  // Call this after every row, or group of rows, that was added.
  HWY_INLINE void end_addition() {
    if (++additions_ == kRun) end_run();
  }

  // Moves the sums of the current run to double. Call this after the last row.
  HWY_NOINLINE void end_run() {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < n_; i += lanes) {
      const Doubles run = hn::PromoteTo(d, hn::LoadU(NarrowF(), run_ + i));
      hn::StoreU(hn::Add(hn::LoadU(d, total_ + i), run), d, total_ + i);
    }
    std::fill_n(run_, n_, 0.0f);
    additions_ = 0;
  }

 private:
  static constexpr std::size_t kRun = 64;
  std::size_t stride_, n_, additions_ = 0;
  double* total_;
  float* run_;
};

// out[i] = sum k of column i < n over all blocks, in their order.
HWY_INLINE void sum_over_blocks(const ColumnSums& sums, void* workspace, std::size_t k, float* out,
                                std::size_t n) {
  const D d;
  const NarrowF narrow;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n; i += lanes) {
    Doubles total = hn::Zero(d);
    for (std::size_t block = 0; block < sums.blocks; ++block) {
      total = hn::Add(total, hn::LoadU(d, sums.total(workspace, block) + k * sums.stride + i));
    }
    const auto rounded = hn::DemoteTo(narrow, total);
    i + lanes <= n ? hn::StoreU(rounded, narrow, out + i)
                   : hn::BlendedStore(rounded, hn::FirstN(narrow, n - i), narrow, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard
