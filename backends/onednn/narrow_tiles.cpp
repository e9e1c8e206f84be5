// Products of bf16 by the tile registers of AMX. A block of the result, two tiles by two, stays in
// registers from the first term to the last.
#include <algorithm>
#include <cstring>

#include "backends/onednn/narrow_product.h"

#ifdef __x86_64__
#include <immintrin.h>

// Intrinsics of tiles say nothing of the memory that they read and write.
#define KEEL_TILE_FENCE() __asm__ volatile("" ::: "memory")
#define KEEL_TILES __attribute__((target("amx-tile,amx-bf16")))

namespace keel::onednn {
namespace {

constexpr std::size_t kTile = 16;          // rows of a tile, and float32 or pairs in a row
constexpr std::size_t kBlock = 2 * kTile;  // rows and columns of a block; terms of a step

// The rows and columns of the tiles of a block; a second tile may have none.
struct Block {
  std::size_t rows[2], columns[2];

  static Block of(std::size_t rows, std::size_t columns) {
    const auto first = [](std::size_t n) { return std::min(n, kTile); };
    const auto second = [](std::size_t n) { return std::min(n, kBlock) - std::min(n, kTile); };
    return {{first(rows), second(rows)}, {first(columns), second(columns)}};
  }
  bool operator==(const Block&) const = default;
};

// The operand of the instruction that sets the shapes of tiles. Tiles 0 to 3 are the block, two to
// a row; 4 and 5 have rows of a; 6 and 7 have columns of b.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  explicit TileShapes(const Block& block) {
    for (std::size_t i = 0; i < 2; ++i) {
      set(4 + i, block.rows[i], kTile);
      set(6 + i, kTile, block.columns[i]);
      for (std::size_t j = 0; j < 2; ++j) set(2 * i + j, block.rows[i], block.columns[j]);
    }
  }

 private:
  void set(std::size_t tile, std::size_t tile_rows, std::size_t words) {
    if (tile_rows == 0 || words == 0) return;
    rows[tile] = std::uint8_t(tile_rows);
    row_bytes[tile] = std::uint16_t(4 * words);
  }
};
static_assert(sizeof(TileShapes) == 64);

struct Strip {
  const void* at;
  std::size_t row_bytes;

  const void* second_rows() const { return static_cast<const char*>(at) + kTile * row_bytes; }
  const void* second_columns() const { return static_cast<const char*>(at) + 4 * kTile; }
};

// Adds the products of kBlock terms.
KEEL_TILES inline void add_terms(const Block& block, const Strip& a, const Strip& b) {
  _tile_loadd(4, a.at, a.row_bytes);
  _tile_loadd(6, b.at, b.row_bytes);
  _tile_dpbf16ps(0, 4, 6);
  if (block.columns[1] > 0) {
    _tile_loadd(7, b.second_columns(), b.row_bytes);
    _tile_dpbf16ps(1, 4, 7);
  }
  if (block.rows[1] == 0) return;
  _tile_loadd(5, a.second_rows(), a.row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  if (block.columns[1] > 0) _tile_dpbf16ps(3, 5, 7);
}

KEEL_TILES void load_block(const Block& block, const Strip& c, bool adds) {
  if (!adds) {
    _tile_zero(0);
    if (block.columns[1] > 0) _tile_zero(1);
    if (block.rows[1] > 0) _tile_zero(2);
    if (block.rows[1] > 0 && block.columns[1] > 0) _tile_zero(3);
    return;
  }
  const Strip lower{c.second_rows(), c.row_bytes};
  _tile_loadd(0, c.at, c.row_bytes);
  if (block.columns[1] > 0) _tile_loadd(1, c.second_columns(), c.row_bytes);
  if (block.rows[1] > 0) _tile_loadd(2, lower.at, c.row_bytes);
  if (block.rows[1] > 0 && block.columns[1] > 0) {
    _tile_loadd(3, lower.second_columns(), c.row_bytes);
  }
}

KEEL_TILES void store_block(const Block& block, float* c, std::size_t row) {
  const std::size_t bytes = row * sizeof(float);
  float* const lower = c + kTile * row;
  _tile_stored(0, c, bytes);
  if (block.columns[1] > 0) _tile_stored(1, c + kTile, bytes);
  if (block.rows[1] > 0) _tile_stored(2, lower, bytes);
  if (block.rows[1] > 0 && block.columns[1] > 0) _tile_stored(3, lower + kTile, bytes);
}

// Fewer than kBlock terms, with zeros after them.
struct LastTerms {
  alignas(64) BF16 a[kBlock * kBlock];
  alignas(64) Pair b[kTile * kBlock];

  LastTerms(const NarrowProduct& p, std::size_t i, std::size_t j) {
    const std::size_t first = p.terms / kBlock * kBlock, terms = p.terms - first;
    const std::size_t rows = std::min(kBlock, p.rows - i), pairs = pairs_of(terms);
    const std::size_t columns = std::min(kBlock, p.columns - j);
    std::memset(static_cast<void*>(a), 0, sizeof(a));
    std::memset(b, 0, sizeof(b));
    for (std::size_t r = 0; r < rows; ++r) {
      std::copy_n(p.a + (i + r) * p.a_row + first, terms, a + r * kBlock);
    }
    for (std::size_t k = 0; k < pairs; ++k) {
      std::copy_n(p.b + (first / 2 + k) * p.b_row + j, columns, b + k * kBlock);
    }
  }
};

// The block whose first element is (i, j).
KEEL_TILES void multiply_block(const NarrowProduct& p, const Block& block, std::size_t i,
                               std::size_t j) {
  float* const c = p.c + i * p.c_row + j;
  const std::size_t a_bytes = p.a_row * sizeof(BF16), b_bytes = p.b_row * sizeof(Pair);
  load_block(block, {c, p.c_row * sizeof(float)}, p.adds);
  const BF16* a = p.a + i * p.a_row;
  const Pair* b = p.b + j;
  for (std::size_t k = kBlock; k <= p.terms; k += kBlock, a += kBlock, b += kTile * p.b_row) {
    add_terms(block, {a, a_bytes}, {b, b_bytes});
  }
  if (p.terms % kBlock > 0) {
    const LastTerms last(p, i, j);
    KEEL_TILE_FENCE();
    add_terms(block, {last.a, kBlock * sizeof(BF16)}, {last.b, kBlock * sizeof(Pair)});
    KEEL_TILE_FENCE();
  }
  store_block(block, c, p.c_row);
}

KEEL_TILES void multiply_by_tiles(const NarrowProduct& p) {
  Block set{};
  KEEL_TILE_FENCE();
  for (std::size_t j = 0; j < p.columns; j += kBlock) {
    for (std::size_t i = 0; i < p.rows; i += kBlock) {
      const Block block = Block::of(p.rows - i, p.columns - j);
      if (block != set) {
        const TileShapes shapes(set = block);
        KEEL_TILE_FENCE();
        _tile_loadconfig(&shapes);
      }
      multiply_block(p, block, i, j);
    }
  }
  _tile_release();
  KEEL_TILE_FENCE();
}

}  // namespace

const MultiplyNarrow kMultiplyByTiles = multiply_by_tiles;

}  // namespace keel::onednn

#else

namespace keel::onednn {
const MultiplyNarrow kMultiplyByTiles = nullptr;
}  // namespace keel::onednn

#endif
