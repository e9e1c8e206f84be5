// The data of the kernels of linear_cross_entropy: for each part (head or cluster) the rows that
// are in it, and then one tile of classes after the other. Only the device knows how many rows a
// part has; kernels end at once where there are none.
#pragma once

#include <vector>

#include "backends/cuda/kernels/factor.cuh"
#include "backends/cuda/kernels/tile_product.cuh"
#include "src/ops/linear_cross_entropy.h"

namespace keel::cuda {

inline constexpr std::int64_t kTileClasses = 1024;  // logits of a row that are held at a time

// The cut-offs of a plan, for kernels; a head without clusters has none.
struct Cutoffs {
  static constexpr int kMost = 16;
  std::int64_t at[kMost];
  int count;
};

struct LinearLossPlan {
  std::int64_t rows, width, vocabulary;
  LinearLossAttrs attrs;
  std::vector<LossPart> parts;

  explicit LinearLossPlan(const NodeContext& context)
      : rows(context.input(LinearLossInput::kX).shape[0]),
        width(context.input(LinearLossInput::kX).shape[1]),
        vocabulary(context.input(LinearLossInput::kTable).shape[0]),
        attrs(context.attrs<LinearLossAttrs>()),
        parts(loss_parts(attrs, vocabulary)) {}
  bool fits_cutoffs() const { return attrs.cutoffs.size() <= std::size_t(Cutoffs::kMost); }
};

// The rows of a part in their order, the class of each, and their number.
struct PartRows {
  Global<std::int32_t> rows, hot, count;
};

// Neighbouring classes of a part: words, or the clusters of the head.
struct ClassTile {
  std::int64_t first, count;      // classes of the part
  Factor classes;                 // (count, width)
  Global<const float> bias;       // (count) or absent
  Global<float> dclasses, dbias;  // in the backward
};

struct LinearLoss {
  std::int64_t rows, width, vocabulary;
  std::int64_t classes = 0;  // of the part
  double smoothing;
  Factor x{};
  bool is_narrow = false;  // x and the classes are bf16
  PartRows part{};
  Global<float> z{};  // (rows, kTileClasses): logits of a tile, or their gradients
  ClassTile tile{};

  __device__ std::int64_t row_count() const { return part.count[0]; }
};

// z = x T^T + b
struct TileLogits {
  LinearLoss of;
  std::int64_t columns;

  __device__ std::int64_t rows() const { return of.row_count(); }
  __device__ std::int64_t terms() const { return of.width; }
  __device__ float a(std::int64_t r, std::int64_t t) const {
    return of.x[of.part.rows[r] * of.width + t];
  }
  __device__ float b(std::int64_t t, std::int64_t c) const {
    return of.tile.classes[c * of.width + t];
  }
  __device__ void store(std::int64_t r, std::int64_t c, float sum) const {
    of.z[r * kTileClasses + c] = sum + of.tile.bias.get(c, 0);
  }
};

// Lists the rows of a part. One block; each thread has neighbouring rows.
__global__ static void list_rows(LossPart part, std::int64_t vocabulary, Cutoffs cutoffs,
                                 Global<const std::int32_t> labels, PartRows to) {
  __shared__ Shared<int, kTileBlock> counts;
  const int thread = int(threadIdx.x);
  const std::int64_t each = (labels.size() + kTileBlock - 1) / kTileBlock, first = thread * each;
  const std::int64_t last = first + each < labels.size() ? first + each : labels.size();
  int own = 0;
  for (std::int64_t r = first; r < last; ++r) own += part.takes(labels[r]) ? 1 : 0;
  counts[thread] = own;
  __syncthreads();
  std::int64_t place = 0;
  for (int t = 0; t < thread; ++t) place += counts[t];
  if (thread == kTileBlock - 1) to.count[0] = std::int32_t(place + own);
  for (std::int64_t r = first; r < last; ++r) {
    const std::int64_t label = labels[r];
    if (!part.takes(label)) continue;
    std::int64_t hot = label - part.first;
    if (label < 0 || label >= vocabulary) {
      hot = -1;
    } else if (label >= part.last) {
      hot = part.words() - 1;
      for (int c = 0; c < cutoffs.count; ++c) hot += label >= cutoffs.at[c] ? 1 : 0;
    }
    to.rows[place] = std::int32_t(r);
    to.hot[place++] = std::int32_t(hot);
  }
}

inline Cutoffs cutoffs_of(const LinearLossAttrs& attrs) {
  Cutoffs cutoffs{};
  for (const std::int64_t cutoff : attrs.cutoffs) cutoffs.at[cutoffs.count++] = cutoff;
  return cutoffs;
}

// Calls begin(part number, work) once for each part, then body(part number, work, is_words, at) for
// each of its tiles. `at` is the tile's first row in the table, or in the clusters if !is_words.
template <class Begin, class Body>
void each_tile(const Binding& b, const LinearLossPlan& plan, LinearLoss work, const Begin& begin,
               const Body& body) {
  using In = LinearLossInput;
  const auto from = [&](int place, std::int64_t first, std::int64_t size) -> Global<const float> {
    const TensorRef& t = b.inputs[std::size_t(place)];
    return t ? Global<const float>(t.as<const float>() + first, size) : Global<const float>();
  };
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const LossPart& part = plan.parts[p];
    work.classes = part.classes();
    launch(list_rows, Grid{1, kTileBlock}, part, plan.vocabulary, cutoffs_of(plan.attrs),
           global<const std::int32_t>(b.inputs[In::kLabels]), work.part);
    begin(p, work);
    const auto run = [&](bool is_words, std::int64_t c, std::int64_t end) {
      const std::int64_t n = std::min(kTileClasses, end - c);
      const std::int64_t at = is_words ? part.first + c : c;
      work.tile.first = is_words ? c : part.words() + c;
      work.tile.count = n;
      work.tile.classes = Factor(b.inputs[is_words ? In::kTable : In::kClusters])
                              .part(at * plan.width, n * plan.width);
      work.tile.bias = from(is_words ? In::kBias : In::kClusterBias, at, n);
      launch(tile_product<TileLogits>, tile_grid(plan.rows, n), TileLogits{work, n});
      body(p, work, is_words, at);
    };
    for (std::int64_t c = 0; c < part.words(); c += kTileClasses) run(true, c, part.words());
    for (std::int64_t c = 0; c < part.clusters; c += kTileClasses) run(false, c, part.clusters);
  }
}

// Parts of the workspace, one after the other; each begins at a multiple of 16 bytes.
class DeviceParts {
 public:
  explicit DeviceParts(const Binding* binding) : binding_(binding) {}
  template <class T>
  Global<T> take(std::int64_t n) {
    const std::int64_t offset = bytes_;
    bytes_ += (n * std::int64_t(sizeof(T)) + 15) / 16 * 16;
    return binding_ ? workspace<T>(*binding_, n, offset) : Global<T>();
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  const Binding* binding_;
  std::int64_t bytes_ = 0;
};

inline LinearLoss linear_loss_of(const LinearLossPlan& plan, const Binding* b, DeviceParts& parts) {
  LinearLoss work{.rows = plan.rows,
                  .width = plan.width,
                  .vocabulary = plan.vocabulary,
                  .smoothing = plan.attrs.label_smoothing};
  if (b) {
    work.x = Factor(b->inputs[LinearLossInput::kX]);
    work.is_narrow = is_narrow(b->inputs[LinearLossInput::kX]);
  }
  work.part = {parts.take<std::int32_t>(plan.rows), parts.take<std::int32_t>(plan.rows),
               parts.take<std::int32_t>(1)};
  work.z = parts.take<float>(plan.rows * kTileClasses);
  return work;
}

}  // namespace keel::cuda
