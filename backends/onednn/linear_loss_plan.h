// The data of the kernels of linear_cross_entropy, and the order of their work: for each part (head
// or cluster) the rows that are in it, and then one tile of classes after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "backends/onednn/panels.h"
#include "backends/onednn/threads.h"
#include "backends/onednn/workspace_parts.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

inline constexpr std::size_t kTileClasses = 192;  // of one tile; its two packed forms fit L2
inline constexpr std::size_t kTileRow = kTileClasses + 16;  // distance of rows of a tile
inline constexpr std::size_t kRowBlock = 48;    // rows of x that one task multiplies by a tile
inline constexpr std::size_t kClassBlock = 48;  // classes, and columns, of a task of dT
inline constexpr std::size_t kColumnBlock = 2 * kWidestPanel;
inline constexpr std::size_t kChunk = 240;  // rows whose part of dT is added up at a time

inline std::size_t blocks_of(std::size_t n, std::size_t block) { return (n + block - 1) / block; }

// Words and clusters do not share a tile.
inline std::size_t tiles_of(const LossPart& part) {
  return blocks_of(std::size_t(part.words()), kTileClasses) +
         blocks_of(std::size_t(part.clusters), kTileClasses);
}

struct LinearLossPlan {
  std::size_t rows, width, vocabulary;
  LinearLossAttrs attrs;
  std::vector<LossPart> parts;
  DType factors;                             // float32 or bf16
  MultiplyNarrow multiply_narrow = nullptr;  // of bf16; null where this process refuses it

  explicit LinearLossPlan(const NodeContext& context) {
    using In = LinearLossInput;
    const Shape& x = context.input(In::kX).shape;
    rows = std::size_t(x[0]), width = std::size_t(x[1]);
    vocabulary = std::size_t(context.input(In::kTable).shape[0]);
    attrs = context.attrs<LinearLossAttrs>();
    parts = loss_parts(attrs, std::int64_t(vocabulary));
    factors = context.input(In::kX).dtype;
    if (is_narrow()) multiply_narrow = narrow_product_here();
  }
  bool is_narrow() const { return factors == DType::kBF16; }
  bool is_refused() const { return is_narrow() && multiply_narrow == nullptr; }
  // Blocks of bf16 are whole tiles of AMX.
  std::size_t row_block() const { return is_narrow() ? 64 : kRowBlock; }
  std::size_t class_block() const { return is_narrow() ? 64 : kClassBlock; }
  std::size_t chunk() const { return is_narrow() ? 512 : kChunk; }
  std::size_t chunks() const { return (rows + chunk() - 1) / chunk(); }
  std::size_t terms(std::size_t n) const { return is_narrow() ? pairs_of(n) : n; }  // packed
  std::size_t row_bytes() const { return width * std::size_t(size_of(factors)); }
};

// Neighbouring classes of a part: words, or the clusters of the head.
struct ClassTile {
  std::size_t first, count;  // classes of the part
  const void* rows;          // (count, width) factors
  const float* bias;         // (count) or null
  float *drows = nullptr, *dbias = nullptr;
};

// The softmax of a row so far, and what its loss reads. A maximum of -infinity says that no class
// has been possible so far.
struct RowState {
  double sum = 0, of_logits = 0;   // of exp(z - max); of z
  float max = -INFINITY, hot = 0;  // hot: z of the label

  double lse() const;  // NaN if no class is possible
};

// One part of the work, and what its tasks share.
struct LinearLossWork {
  LinearLossPlan plan;
  const LossPart* part = nullptr;
  std::size_t rows = 0;               // in the part
  const void* x = nullptr;            // factors of these rows
  const std::int32_t* hot = nullptr;  // the class of each of them
  ClassTile tile{};
  void* columns = nullptr;  // the tile in panels of its transpose (width, count)
  float* z = nullptr;       // (rows, kTileRow), logits or P of the tile
  RowState* states = nullptr;
  // Only gradients need these.
  void* words = nullptr;                    // the tile in panels (count, width)
  void* x_panels = nullptr;                 // x in panels, chunk by chunk
  BF16 *p = nullptr, *p_columns = nullptr;  // of bf16: P, and (kTileClasses, column_row())
  const float* lse = nullptr;
  float* dx = nullptr;
  float gradient = 0;
  bool has_logits = false;  // whether z has the tile's logits before its gradient is taken
  bool adds_rows = false;   // whether dT has sums of earlier rows

  explicit LinearLossWork(const LinearLossPlan& of) : plan(of) {}
  std::size_t column_row() const { return padded_row(plan.rows); }
  bool smooths() const { return plan.attrs.label_smoothing > 0; }
};

// Adds the losses of a part's rows in their order, and saves their lse (rows of all).
struct LossTotals {
  double sum = 0, nll = 0;

  void add(const LinearLossWork& w, const std::int32_t* rows, float* lse);
};

// Sets drows and dbias to where the gradients of the tile belong; gradients: those of the op.
void place_gradients(LinearLossWork& w, std::span<const TensorRef> gradients);

// dx of a part's rows, in their order, is added to that of all rows.
void scatter_rows(const LinearLossWork& w, const std::int32_t* rows, const float* of_part,
                  float* dx);

// The tasks of a tile, each for a block of its classes or rows.
void pack_tile(const LinearLossWork& w, std::size_t task);            // for logits
void take_rows(const LinearLossWork& w, std::size_t block);           // logits, and states of rows
void pack_gradient(const LinearLossWork& w, std::size_t task);        // for logits and gradients
void pack_chunk(const LinearLossWork& w, std::size_t chunk);          // x, once a part
void differentiate_rows(const LinearLossWork& w, std::size_t block);  // P, dx += P T
void differentiate_classes(const LinearLossWork& w, std::size_t task);  // dT = P^T x

// The rows of a part in their order, and the class of each.
struct PartRows {
  std::int32_t *rows, *hot;
  std::size_t count = 0;

  void list(const LinearLossPlan& plan, const LossPart& part, const std::int32_t* labels) {
    count = 0;
    for (std::size_t row = 0; row < plan.rows; ++row) {
      if (!part.takes(labels[row])) continue;
      rows[count] = std::int32_t(row);
      hot[count++] =
          std::int32_t(class_of(plan.attrs, part, labels[row], std::int64_t(plan.vocabulary)));
    }
  }
};

// The rows of a part one after the other: x itself if they are all rows, else `to` after a copy.
const void* gather_rows(const LinearLossPlan& plan, const PartRows& rows, const void* x, void* to);

// Calls body() for every tile of a part, with the tile set.
template <class Body>
void each_tile(LinearLossWork& work, const Binding& b, const Body& body) {
  using In = LinearLossInput;
  const auto bias = [&](int place, std::size_t first) -> const float* {
    const TensorRef& t = b.inputs[std::size_t(place)];
    return t ? t.as<const float>() + first : nullptr;
  };
  const auto row = [&](int place, std::size_t number) -> const void* {
    return b.inputs[std::size_t(place)].as<const std::byte>() + number * work.plan.row_bytes();
  };
  const std::size_t words = std::size_t(work.part->words());
  for (std::size_t c = 0; c < words; c += kTileClasses) {
    const std::size_t word = std::size_t(work.part->first) + c;
    work.tile = {c, std::min(kTileClasses, words - c), row(In::kTable, word),
                 bias(In::kBias, word)};
    body();
  }
  const std::size_t clusters = std::size_t(work.part->clusters);
  for (std::size_t c = 0; c < clusters; c += kTileClasses) {
    work.tile = {words + c, std::min(kTileClasses, clusters - c), row(In::kClusters, c),
                 bias(In::kClusterBias, c)};
    body();
  }
}

// Runs task(w, i) for every i below count, shared out to the threads.
inline void run_tasks(std::size_t count, const LinearLossWork& w,
                      void (*task)(const LinearLossWork&, std::size_t)) {
  if (count == 0) return;
  parallel_blocks(std::int64_t(count), [&](std::int64_t i) { task(w, std::size_t(i)); });
}

// All tasks of a tile: its logits and the rows' states; or P, dx and dT.
void take_tile(const LinearLossWork& w);
void differentiate_tile(const LinearLossWork& w);

}  // namespace keel::onednn
