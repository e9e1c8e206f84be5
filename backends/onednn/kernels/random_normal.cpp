// Standard normal numbers, drawn in registers: two from a block of random words.
#include "src/ops/random_normal.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/philox_stream.h"
#include "backends/onednn/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/random_normal.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/random_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The elements of y (rows, width) in blocks [begin, end).
void draw(const RandomRows& rows, std::int64_t begin, std::int64_t end, float* y) {
  const auto interleave = [](const PhiloxWords& words, float* drawn) KEEL_LOOP_BODY {
    hn::StoreInterleaved2(normal(words.w[0], words.w[1]), normal(words.w[2], words.w[3]), F(),
                          drawn);
  };
  const auto store = [&](std::int64_t first, const float* drawn, std::size_t n) KEEL_LOOP_BODY {
    for_lanes(n, [&](auto part, std::size_t k) KEEL_LOOP_BODY {
      part.store(hn::LoadU(F(), drawn + k), y + std::size_t(first) + k);
    });
  };
  each_drawn<2, float>(rows, begin, end, interleave, store);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(draw);

using P = RandomNormalPorts;

Prepared prepare_random_normal(const NodeContext& context) {
  const auto attrs = context.attrs<RandomNormalAttrs>();
  return kernel_of([=](const Binding& b) {
    const RandomRows rows{PhiloxStream::of(attrs, *b.inputs[P::kTick].as<std::int32_t>()),
                          drawn_rows(attrs.shape), *b.inputs[P::kFirstRow].as<std::int32_t>()};
    float* y = b.outputs[P::kY].as<float>();
    parallel_range(rows.blocks(2), kBlockElements / 2, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(draw)(rows, begin, end, y);
    });
  });
}

}  // namespace keel::onednn
#endif
