#include "backends/onednn/kernels/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/bf16.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void round_bf16(const float* from, BF16* to, std::size_t n) { round_row(from, to, n); }

void widen(const BF16* from, float* to, std::size_t n) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(widened(load_bits(from + i)), F(), to + i);
  for (; i < n; ++i) to[i] = float(from[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(round_bf16);
HWY_EXPORT(widen);

void round_to_bf16(const float* from, BF16* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(round_bf16)(from, to, std::size_t(n));
}

void widen_bf16(const BF16* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(widen)(from, to, std::size_t(n));
}

}  // namespace keel::onednn
#endif
