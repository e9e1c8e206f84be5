#include "backends/onednn/column_blocks.h"

#include <optional>

namespace keel::onednn {
namespace {

// Elements that are not worth a fork; of tokens, which take three of them unless they have few
// rows.
constexpr std::int64_t kSerialElements = 4 * 1024;
constexpr std::int64_t kSerialTokens = 32 * 1024, kSerialFewTokens = 48 * 1024;
constexpr std::int64_t kResidentElements = 256 * 1024;  // 1 MiB, half the L2 of a core
constexpr std::int64_t kTaskElements = 128 * 1024;
constexpr std::int64_t kBlocks = 32, kSums = 64 * 1024, kLeastRows = 64;
// The fewest channels of a panel: an eighth of a page, and one register.
constexpr std::int64_t kTokenPanel = 128, kImagePanel = 16;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

ColumnBlocks grid(const ColumnSizes& s, std::int64_t panel, std::int64_t block) {
  panel = std::max<std::int64_t>(panel, 1);  // there may be no channel
  return {s, panel, divide_up(s.channels, panel), block, divide_up(s.outer, block)};
}

// As many blocks as their sums leave room for.
std::int64_t most_blocks(std::int64_t sums, std::int64_t channels) {
  return std::clamp<std::int64_t>(kSums / (sums * channels), 1, kBlocks);
}

// Blocks of rows that all threads go through twice, of the same size: four, of tokens fewer where
// kLeastRows ask for it, or a multiple of four of at most kTaskElements each.
ColumnBlocks row_grid(const ColumnSizes& s, std::int64_t sums) {
  const std::int64_t panel = std::min<std::int64_t>(s.channels, 1024);
  const std::int64_t task_rows = std::max<std::int64_t>(1, kTaskElements / (panel * s.inner));
  const std::int64_t few = s.inner == 1 ? s.outer / kLeastRows : s.outer;
  std::int64_t blocks = std::clamp<std::int64_t>(few, 1, 4);
  if (blocks * task_rows < s.outer) blocks = divide_up(divide_up(s.outer, task_rows), 4) * 4;
  blocks = std::min(blocks, most_blocks(sums, s.channels));
  return grid(s, panel, divide_up(s.outer, blocks));
}

// Panels with all rows: at least eight, of as many channels as stay in L2 between two passes over
// them, if those are `least`.
std::optional<ColumnBlocks> panel_grid(const ColumnSizes& s, std::int64_t tensors,
                                       std::int64_t least) {
  const std::int64_t resident = kResidentElements / (tensors * s.count()) / least * least;
  if (resident < least || s.channels <= least) return std::nullopt;
  const std::int64_t eighth = divide_up(divide_up(s.channels, 8), least) * least;
  return grid(s, std::min(resident, eighth), s.outer);
}

// The rows of a panel are a few lines of each page, which the processor fetches one by one before
// they are written: whole rows take half to a third of the time, unless there are only a few.
ColumnBlocks token_blocks(const ColumnSizes& s, std::int64_t tensors, std::int64_t sums) {
  const bool has_few_rows = s.outer < 2 * kLeastRows;
  const std::int64_t serial = has_few_rows ? kSerialFewTokens : kSerialTokens;
  if (s.outer * s.channels <= serial) return grid(s, s.channels, s.outer);
  const auto panels = has_few_rows ? panel_grid(s, tensors, kTokenPanel) : std::nullopt;
  return panels ? *panels : row_grid(s, sums);
}

ColumnBlocks image_blocks(const ColumnSizes& s, std::int64_t tensors, std::int64_t sums) {
  if (s.count() * s.channels <= kSerialElements) return grid(s, s.channels, s.outer);
  const auto panels = panel_grid(s, tensors, kImagePanel);
  return panels ? *panels : row_grid(s, sums);
}

// Rows that are taken `unit` at a time, in blocks of at least `elements`.
struct Units {
  ColumnSizes sizes;
  std::int64_t unit, elements;
};

ColumnBlocks whole_blocks(const Units& of, std::int64_t sums) {
  const ColumnSizes& s = of.sizes;
  if (s.outer * s.channels <= kSerialElements) return grid(s, s.channels, s.outer);
  const std::int64_t least = std::max<std::int64_t>(1, of.elements / (of.unit * s.channels));
  const std::int64_t most = most_blocks(sums, s.channels);
  return grid(s, s.channels, of.unit * std::max(least, divide_up(s.outer / of.unit, most)));
}

}  // namespace

Tile ColumnBlocks::tile(std::int64_t b, std::int64_t p) const {
  const std::int64_t row = b * block, channel = p * panel;
  Tile tile = all_rows(channel, std::min(panel, sizes.channels - channel));
  tile.rows = std::size_t(std::min(block, sizes.outer - row));
  tile.offset += std::size_t(row) * tile.stride;
  return tile;
}

Tile ColumnBlocks::all_rows(std::int64_t first, std::int64_t channels) const {
  return {.rows = std::size_t(sizes.outer),
          .channels = std::size_t(channels),
          .inner = std::size_t(sizes.inner),
          .stride = std::size_t(sizes.channels * sizes.inner),
          .offset = std::size_t(first * sizes.inner),
          .first = std::size_t(first)};
}

std::int64_t ColumnBlocks::channel_range() const {
  constexpr std::int64_t kSumsOfATask = 4 * 1024;
  return divide_up(std::max<std::int64_t>(1, kSumsOfATask / blocks), 64) * 64;
}

ColumnBlocks column_blocks(const ColumnSizes& s, std::int64_t tensors, std::int64_t sums) {
  return s.inner == 1 ? token_blocks(s, tensors, sums) : image_blocks(s, tensors, sums);
}

ColumnBlocks whole_row_blocks(const ColumnSizes& s, std::int64_t sums) {
  constexpr std::int64_t kElements = 32 * 1024;
  return whole_blocks({s, 1, kElements}, sums);
}

ColumnBlocks sample_blocks(std::int64_t samples, std::int64_t steps, std::int64_t channels,
                           std::int64_t sums) {
  return whole_blocks({{samples * steps, channels, 1}, steps, kTaskElements}, sums);
}

}  // namespace keel::onednn
