// Multi-linear attention. T of a chunk of sequences is computed and multiplied by `out`; then the
// next chunk takes its place.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/multilinear.cuh"

namespace keel::cuda {
namespace {

struct Forward {
  Multilinear of;
  ChunkPlan chunks;
  ChunkProduct times_v, times_out;

  explicit Forward(const Multilinear& m)
      : of(m),
        chunks(m),
        times_v(chunks, tile_of(m.sizes)),
        times_out(chunks,
                  {.sizes = {1, m.sizes.positions, m.sizes.pairs(), m.sizes.features, true}}) {}

  std::int64_t workspace() const {
    return chunks.products_at + std::max(times_v.workspace(), times_out.workspace());
  }
  void run(const Binding& b) const {
    for (std::int64_t i = 0; i < chunks.chunks(); ++i) {
      const Sequences s(bound_to(of, b), chunks, b, i);
      fill_tile(s, times_v);
      times_out(s, s.t.data(), s.of.out.data(), s.part(output(b.outputs[0]), of.results()).data());
    }
  }
};

}  // namespace

Prepared prepare_multilinear_attention(const NodeContext& context) {
  const Forward forward(multilinear_of(context));
  return kernel_of([forward](const Binding& b) { forward.run(b); }, forward.workspace());
}

}  // namespace keel::cuda
