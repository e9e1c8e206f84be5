#include "backends/onednn/column_blocks.h"

namespace keel::onednn {
namespace {

constexpr std::int64_t kSerialElements = 4 * 1024;      // less is not worth a fork
constexpr std::int64_t kResidentElements = 256 * 1024;  // 1 MiB, half the L2 of a core
constexpr std::int64_t kTaskElements = 128 * 1024;
constexpr std::int64_t kBlocks = 32, kSums = 64 * 1024;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

ColumnBlocks grid(const ColumnSizes& s, std::int64_t panel, std::int64_t block) {
  panel = std::max<std::int64_t>(panel, 1);  // there may be no channel
  return {s, panel, divide_up(s.channels, panel), block, divide_up(s.outer, block)};
}

// As many blocks as their sums leave room for.
std::int64_t most_blocks(std::int64_t sums, std::int64_t channels) {
  return std::clamp<std::int64_t>(kSums / (sums * channels), 1, kBlocks);
}

// The fewest channels a panel may have: whole registers, and four cache lines of a row of tokens.
std::int64_t least_panel(const ColumnSizes& s) { return s.inner == 1 ? 64 : 16; }

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

Slab ColumnBlocks::slab(std::int64_t b, std::int64_t p) const {
  const std::int64_t row = b * block, channel = p * panel;
  Slab slab = all_rows(channel, std::min(panel, sizes.channels - channel));
  slab.rows = std::size_t(std::min(block, sizes.outer - row));
  slab.offset += std::size_t(row) * slab.stride;
  return slab;
}

Slab ColumnBlocks::all_rows(std::int64_t first, std::int64_t channels) const {
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
  const std::int64_t elements = s.count() * s.channels;
  if (elements <= kSerialElements) return grid(s, s.channels, s.outer);
  const std::int64_t least = least_panel(s);
  const std::int64_t resident = kResidentElements / (tensors * s.count()) / least * least;
  // A panel of tokens uses a few lines of each page and so a few sets of the cache; only a tensor
  // that fits as a whole is sure to stay.
  const bool stays = s.inner > 1 || tensors * elements <= kResidentElements;
  if (stays && resident >= least && s.channels > least) {
    const std::int64_t eighth = divide_up(divide_up(s.channels, 8), least) * least;
    return grid(s, std::min(resident, eighth), s.outer);
  }
  const std::int64_t panel = std::min<std::int64_t>(s.channels, 1024);
  const std::int64_t most = most_blocks(sums, s.channels);
  const std::int64_t least_rows = std::max<std::int64_t>(1, kTaskElements / (panel * s.inner));
  return grid(s, panel, std::max(least_rows, divide_up(s.outer, most)));
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
