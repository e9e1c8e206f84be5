// Dropout. Four neighbours share a block of random words, so a thread draws the mask of four. The
// backward is the same map, applied to dy.
#include <cmath>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/quad.cuh"
#include "src/core/rng.h"
#include "src/ops/dropout.h"

namespace keel::cuda {
namespace {

// Element e is kept when its 24 random bits are `threshold` or more.
struct Dropout {
  std::uint64_t seed;
  std::uint32_t stream, threshold;
  float factor;
};

__global__ void drop_out(Dropout op, Global<const float> x, Global<const std::int32_t> step,
                         Global<float> y) {
  const Philox random(op.seed, op.stream, static_cast<std::uint32_t>(step[0]));
  for (std::int64_t q = grid_thread(); q < quads_of(x.size()); q += grid_threads()) {
    const Philox4 words = random.block(static_cast<std::uint64_t>(q));
    Quad quad = load_quad(x, q);
    for (int i = 0; i < 4; ++i) {
      const bool is_kept = words[std::size_t(i)] >> 8 >= op.threshold;
      quad.at[i] = is_kept ? quad.at[i] * op.factor : 0;
    }
    store_quad(y, q, quad);
  }
}

}  // namespace

Prepared prepare_dropout(const NodeContext& context) {
  const auto attrs = context.attrs<DropoutAttrs>();
  const Dropout op{static_cast<std::uint64_t>(attrs.seed), static_cast<std::uint32_t>(attrs.stream),
                   // uniform(e) >= p, where uniform is the 24 bits times 2^-24.
                   static_cast<std::uint32_t>(std::ceil(attrs.p * 0x1p24)),
                   float(1 / (1 - attrs.p))};
  return kernel_of([op](const Binding& b) {
    const auto x = input(b.inputs[0]);
    launch(drop_out, one_thread_a_quad(x.size()), op, x, global<const std::int32_t>(b.inputs[1]),
           output(b.outputs[0]));
  });
}

}  // namespace keel::cuda
