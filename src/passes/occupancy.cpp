#include "src/passes/occupancy.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace keel {

void ByteSet::add(ByteRange range) {
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &ByteRange::end);
  const auto last =
      std::ranges::upper_bound(first, ranges_.end(), range.end, {}, &ByteRange::begin);
  if (first == last) {
    ranges_.insert(first, range);
    return;
  }
  *first = {std::min(first->begin, range.begin), std::max((last - 1)->end, range.end)};
  ranges_.erase(first + 1, last);
}

Occupancy::Occupancy(int times)
    : leaves_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(times)))),
      nodes_(2 * static_cast<std::size_t>(leaves_)) {}

// The fewest nodes that make up a lifetime.
template <class Visit>
void Occupancy::visit_pieces(Lifetime life, Visit visit) const {
  int begin = life.first + leaves_, end = life.last + leaves_ + 1;
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1) visit(static_cast<std::size_t>(begin++));
    if (end % 2 == 1) visit(static_cast<std::size_t>(--end));
  }
}

// The nodes with the first or the last time in them: all that a lifetime shares some, but not all
// times with, and some that are parts of it.
template <class Visit>
void Occupancy::visit_bounds(Lifetime life, Visit visit) const {
  int first = life.first + leaves_, last = life.last + leaves_;
  for (; first > 0; first /= 2, last /= 2) {
    visit(static_cast<std::size_t>(first));
    if (last != first) visit(static_cast<std::size_t>(last));
  }
}

void Occupancy::take(Lifetime life, ByteRange range) {
  visit_bounds(life, [&](std::size_t node) { nodes_[node].sometime.add(range); });
  visit_pieces(life, [&](std::size_t node) {
    nodes_[node].throughout.add(range);
    nodes_[node].sometime.add(range);
  });
}

// Two lifetimes meet when a piece of one lies within a piece of the other: the sets of the pieces
// of `life` know of those below them, and the sets of the nodes above hold the rest.
std::int64_t Occupancy::lowest_free(Lifetime life, std::int64_t bytes) const {
  std::vector<std::span<const ByteRange>> taken;  // what may still be in the way
  const auto consider = [&](const ByteSet& set) {
    if (!set.ranges().empty()) taken.push_back(set.ranges());
  };
  visit_bounds(life, [&](std::size_t node) { consider(nodes_[node].throughout); });
  visit_pieces(life, [&](std::size_t node) { consider(nodes_[node].sometime); });
  std::int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::span<const ByteRange>& ranges : taken) {
      for (; !ranges.empty() && ranges.front().begin < offset + bytes; ranges = ranges.subspan(1)) {
        if (ranges.front().end <= offset) continue;
        offset = ranges.front().end;
        moved = true;
      }
    }
  }
  return offset;
}

std::int64_t place_blocks(std::vector<PlacedBlock>& blocks, int times) {
  std::vector<PlacedBlock*> order;
  for (PlacedBlock& block : blocks) {
    if (block.bytes > 0) order.push_back(&block);
  }
  std::ranges::stable_sort(order, std::greater{}, &PlacedBlock::bytes);
  Occupancy occupancy(times);
  std::int64_t top = 0;
  for (PlacedBlock* block : order) {
    block->offset = occupancy.lowest_free(block->life, block->bytes);
    const std::int64_t end = block->offset + block->bytes;
    occupancy.take(block->life, {block->offset, end});
    top = std::max(top, end);
  }
  return top;
}

}  // namespace keel
