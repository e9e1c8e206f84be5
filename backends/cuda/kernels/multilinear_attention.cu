// Multi-linear attention. T of a group of queries is computed and multiplied by those rows of `out`
// that it meets; then the next group takes its place.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/multilinear.cuh"

namespace keel::cuda {
namespace {

// y = T out
struct TimesOut {
  QueryGroup group;
  Global<const float> t;
  Global<float> y;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return group.rows(); }
  __device__ std::int64_t terms() const { return group.pairs(); }
  __device__ float a(std::int64_t row, std::int64_t pair) const {
    return t[row * group.pairs() + pair];
  }
  __device__ float b(std::int64_t pair, std::int64_t f) const {
    return group.of.out[group.weight(pair, f)];
  }
  __device__ void store(std::int64_t row, std::int64_t f, float sum) const {
    y[group.feature(row, f)] = sum;
  }
};

}  // namespace

Prepared prepare_multilinear_attention(const NodeContext& context) {
  const Multilinear of = multilinear_of(context);
  const std::int64_t tile = group_tile(of.sizes);
  return kernel_of(
      [=](const Binding& b) {
        const Global<float> t = workspace(b, tile);
        for (std::int64_t first = 0; first < of.sizes.positions; first += kGroupQueries) {
          const QueryGroup group(bound_to(of, b), first);
          launch(fill_t, one_thread_each(group.rows() * group.pairs()), group, t);
          launch(tile_product<TimesOut>, tile_grid(group.rows(), of.sizes.features),
                 TimesOut{group, t, output(b.outputs[0]), of.sizes.features});
        }
      },
      tile * std::int64_t(sizeof(float)));
}

}  // namespace keel::cuda
