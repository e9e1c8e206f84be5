// Standard normal numbers, sampled in registers: two from a block of random words.
#include "src/ops/random_normal.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/random_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/random_normal.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/random_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The elements of y (rows, width) in blocks [begin, end).
void draw(const Binding& b, const RandomRows& rows, std::int64_t begin, std::int64_t end) {
  float* const y = b.outputs[0].as<float>();
  const auto interleave = [](const PhiloxWords& words, float* sampled) KEEL_LOOP_BODY {
    hn::StoreInterleaved2(normal(words.w[0], words.w[1]), normal(words.w[2], words.w[3]), F(),
                          sampled);
  };
  const auto store = [&](std::int64_t first, const float* sampled, std::size_t n) KEEL_LOOP_BODY {
    for_lanes(n, [&](auto part, std::size_t k) KEEL_LOOP_BODY {
      part.store(part.load(sampled + k), y + std::size_t(first) + k);
    });
  };
  each_sampled<2, float>(rows, begin, end, interleave, store);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(draw);

Prepared prepare_random_normal(const NodeContext& context) {
  const auto attrs = context.attrs<RandomNormalAttrs>();
  return by_sampled_rows<RandomNormalInput>(attrs, sampled_rows(attrs.shape), 2,
                                            [](const auto&... args) {
                                              HWY_DYNAMIC_DISPATCH(draw)(args...);
                                            });
}

}  // namespace keel::onednn
#endif
