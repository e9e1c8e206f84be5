// The data of the kernels of linear_cross_entropy: for each part (head or cluster) the rows that
// are in it, and then one tile of classes after the other.
//
// The head takes all rows in their order, those that do not count with gradients of 0, so cuBLASLt
// multiplies its tiles. Only the device knows how many rows a cluster has, and which; its kernels
// end at once where there are none.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "backends/cuda/kernels/factor.cuh"
#include "backends/cuda/kernels/tile_product.cuh"
#include "backends/cuda/matmul.h"
#include "src/ops/linear_cross_entropy.h"

namespace keel::cuda {

// The logits that are held at a time take no more than kTileBytes, unless there are so many rows
// that these hold fewer than kLeastClasses of each; and no more than kMostClasses of each.
inline constexpr std::int64_t kTileBytes = 32 << 20, kLeastClasses = 1024, kMostClasses = 4096;
inline constexpr std::int64_t kTileUnit = 64;  // tiles begin at multiples of so many classes
inline constexpr int kRowBlock = 256;          // threads that work on the logits of a row
inline constexpr std::int32_t kIgnored = -2;   // the class of a row that does not count

// The classes of a part's tiles, but for the last: of about equally many each.
inline std::int64_t tile_length(std::int64_t rows, std::int64_t classes) {
  const std::int64_t fit =
      kTileBytes / std::int64_t(sizeof(float)) / std::max<std::int64_t>(rows, 1);
  const std::int64_t most = std::clamp(fit / kTileUnit * kTileUnit, kLeastClasses, kMostClasses);
  const std::int64_t tiles = std::max<std::int64_t>(ceil_div(classes, most), 1);
  return ceil_div(ceil_div(classes, tiles), kTileUnit) * kTileUnit;
}

// The products with a tile of the head's classes; the last two are the backward's.
struct TileProducts {
  ProductPlan logits, dx, dclasses;
};

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
  std::int64_t tile_logits = 0;  // the most logits of a tile
  // The products of the head have the number of the tile's classes as their key.
  std::map<std::int64_t, TileProducts> products = {};
  std::int64_t product_workspace = 0;

  explicit LinearLossPlan(const NodeContext& context)
      : rows(context.input(LinearLossInput::kX).shape[0]),
        width(context.input(LinearLossInput::kX).shape[1]),
        vocabulary(context.input(LinearLossInput::kTable).shape[0]),
        attrs(context.attrs<LinearLossAttrs>()),
        parts(loss_parts(attrs, vocabulary)) {
    for (const LossPart& part : parts) {
      for (const std::int64_t classes : {part.words(), part.clusters}) {
        tile_logits = std::max(tile_logits, rows * tile_length(rows, classes));
      }
    }
  }
  bool fits_cutoffs() const { return attrs.cutoffs.size() <= std::size_t(Cutoffs::kMost); }

  // Plans the products of the head, without those of the backward or with them.
  void plan_products(const NodeContext& context, bool with_gradients) {
    using In = LinearLossInput;
    for (const std::int64_t classes : {parts[0].words(), parts[0].clusters}) {
      if (classes == 0) continue;
      const std::int64_t length = tile_length(rows, classes);
      for (const std::int64_t n : {std::min(length, classes), classes % length}) {
        if (n == 0 || products.contains(n)) continue;
        Product product{.has_bias = context.has(In::kBias),
                        .is_narrow = context.input(In::kX).dtype == DType::kBF16};
        const auto planned = [&](const MatmulSizes& sizes, bool transpose_a, bool transpose_b) {
          product.sizes = sizes;
          product.transpose_a = transpose_a, product.transpose_b = transpose_b;
          ProductPlan made = plan_product(product);
          product_workspace = std::max(product_workspace, made.workspace);
          return made;
        };
        TileProducts& of = products[n];
        of.logits = planned({1, rows, width, n, false}, false, true);
        if (!with_gradients) continue;
        product.has_bias = false;
        of.dx = planned({1, rows, n, width, false}, false, false);
        of.dclasses = planned({1, n, rows, width, false}, true, false);
      }
    }
  }
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
  Global<float> z{};  // (rows, classes of the tile): logits, or their gradients
  ClassTile tile{};
  void* product_memory = nullptr;

  __device__ std::int64_t row_count() const { return part.count[0]; }
  __device__ bool ignores(std::int64_t r) const { return part.hot[r] == kIgnored; }
  __device__ float& logit(std::int64_t r, std::int64_t c) const { return z[r * tile.count + c]; }
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
    of.logit(r, c) = sum + of.tile.bias.get(c, 0);
  }
};

// Which class a label is of a part.
struct Classes {
  LossPart part;
  std::int64_t vocabulary;
  Cutoffs cutoffs;

  __device__ std::int32_t of(std::int64_t label) const {
    if (label < 0 || label >= vocabulary) return -1;
    std::int64_t hot = label - part.first;
    if (label >= part.last) {
      hot = part.words() - 1;
      for (int c = 0; c < cutoffs.count; ++c) hot += label >= cutoffs.at[c] ? 1 : 0;
    }
    return std::int32_t(hot);
  }
};

// The rows of the head are all.
__global__ static void list_all_rows(Classes classes, Global<const std::int32_t> labels,
                                     PartRows to) {
  if (grid_thread() == 0) to.count[0] = std::int32_t(labels.size());
  for (std::int64_t r = grid_thread(); r < labels.size(); r += grid_threads()) {
    const std::int64_t label = labels[r];
    to.rows[r] = std::int32_t(r);
    to.hot[r] = classes.part.takes(label) ? classes.of(label) : kIgnored;
  }
}

// Lists the rows of a cluster. One block; each thread has neighbouring rows.
__global__ static void list_rows(Classes classes, Global<const std::int32_t> labels, PartRows to) {
  __shared__ Shared<int, kTileBlock> counts;
  const int thread = int(threadIdx.x);
  const std::int64_t each = (labels.size() + kTileBlock - 1) / kTileBlock, first = thread * each;
  const std::int64_t last = first + each < labels.size() ? first + each : labels.size();
  int own = 0;
  for (std::int64_t r = first; r < last; ++r) own += classes.part.takes(labels[r]) ? 1 : 0;
  counts[thread] = own;
  __syncthreads();
  std::int64_t place = 0;
  for (int t = 0; t < thread; ++t) place += counts[t];
  if (thread == kTileBlock - 1) to.count[0] = std::int32_t(place + own);
  for (std::int64_t r = first; r < last; ++r) {
    const std::int64_t label = labels[r];
    if (!classes.part.takes(label)) continue;
    to.rows[place] = std::int32_t(r);
    to.hot[place++] = classes.of(label);
  }
}

inline Cutoffs cutoffs_of(const LinearLossAttrs& attrs) {
  Cutoffs cutoffs{};
  for (const std::int64_t cutoff : attrs.cutoffs) cutoffs.at[cutoffs.count++] = cutoff;
  return cutoffs;
}

// A tile of a part: its first row in the table, or in the clusters if !is_words, and the products
// with it, or none in a cluster.
struct TilePlace {
  std::size_t part;
  bool is_words;
  std::int64_t at;
  const TileProducts* products;
};

// Calls begin(part number, work) once for each part, then body(place, work) for each of its tiles,
// after its logits were computed.
template <class Begin, class Body>
void each_tile(const Binding& b, const LinearLossPlan& plan, LinearLoss work, const Begin& begin,
               const Body& body) {
  using In = LinearLossInput;
  const auto labels = global<const std::int32_t>(b.inputs[In::kLabels]);
  const auto from = [&](int place, std::int64_t first, std::int64_t size) -> Global<const float> {
    const TensorRef& t = b.inputs[std::size_t(place)];
    return t ? Global<const float>(t.as<const float>() + first, size) : Global<const float>();
  };
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const LossPart& part = plan.parts[p];
    const Classes classes{part, plan.vocabulary, cutoffs_of(plan.attrs)};
    work.classes = part.classes();
    if (p == 0) {
      const Grid grid = one_thread_each(std::max<std::int64_t>(plan.rows, 1));
      launch(list_all_rows, grid, classes, labels, work.part);
    } else {
      launch(list_rows, Grid{1, kTileBlock}, classes, labels, work.part);
    }
    begin(p, work);
    const auto run = [&](bool is_words, std::int64_t c, std::int64_t n) {
      const std::int64_t at = is_words ? part.first + c : c;
      const Factor table(b.inputs[is_words ? In::kTable : In::kClusters]);
      work.tile.first = is_words ? c : part.words() + c;
      work.tile.count = n;
      work.tile.classes = table.part(at * plan.width, n * plan.width);
      work.tile.bias = from(is_words ? In::kBias : In::kClusterBias, at, n);
      const TilePlace place{p, is_words, at, p == 0 ? &plan.products.at(n) : nullptr};
      if (p == 0) {
        place.products->logits({work.x.data(), work.tile.classes.data(), work.tile.bias.data(),
                                work.z.data(), work.product_memory});
      } else {
        launch(tile_product<TileLogits>, tile_grid(plan.rows, n), TileLogits{work, n});
      }
      body(place, work);
    };
    for (const bool is_words : {true, false}) {
      const std::int64_t end = is_words ? part.words() : part.clusters;
      const std::int64_t length = tile_length(plan.rows, end);
      for (std::int64_t c = 0; c < end; c += length) run(is_words, c, std::min(length, end - c));
    }
  }
}

// Parts of the workspace, one after the other; each is aligned as products want it.
class DeviceParts {
 public:
  explicit DeviceParts(const Binding* binding) : binding_(binding) {}
  template <class T>
  Global<T> take(std::int64_t n) {
    const std::int64_t offset = bytes_;
    bytes_ += ceil_div(n * std::int64_t(sizeof(T)), kUnit) * kUnit;
    return binding_ ? workspace<T>(*binding_, n, offset) : Global<T>();
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr auto kUnit = std::int64_t(kAlignment);
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
  work.z = parts.take<float>(plan.tile_logits);
  work.product_memory = parts.take<std::byte>(plan.product_workspace).data();
  return work;
}

}  // namespace keel::cuda
