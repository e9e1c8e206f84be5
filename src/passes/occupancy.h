// Which bytes of an arena are in use at which times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel {

// A lifetime: from the first to the last time, both included.
struct Lifetime {
  int first = 0, last = 0;
};

// The bytes from `begin` up to, but not including, `end`.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
};

// Disjoint ranges of bytes, ascending; adjacent ranges are merged.
class ByteSet {
 public:
  void add(ByteRange range);
  std::span<const ByteRange> ranges() const { return ranges_; }

 private:
  std::vector<ByteRange> ranges_;
};

// A binary tree over time. A lifetime is cut into the fewest time ranges that are nodes of the
// tree, O(log times) of them. If memory is packed densely, the sets of a node shrink to a few
// ranges, so both operations are nearly logarithmic.
class Occupancy {
 public:
  // Times run from 0 to times - 1.
  explicit Occupancy(int times);

  void take(Lifetime life, ByteRange range);
  // The lowest offset at which `bytes` bytes are free throughout `life`.
  std::int64_t lowest_free(Lifetime life, std::int64_t bytes) const;

 private:
  struct Taken {
    ByteSet throughout;  // of lifetimes cut into this node
    ByteSet sometime;    // of lifetimes cut into this node or one below
  };

  template <class Visit>
  void visit_pieces(Lifetime life, Visit visit) const;
  template <class Visit>
  void visit_bounds(Lifetime life, Visit visit) const;

  int leaves_;
  std::vector<Taken> nodes_;  // the children of node i are 2 i and 2 i + 1, the root is 1
};

// Bytes that are in use for a lifetime, and the offset that they were given.
struct PlacedBlock {
  std::int64_t bytes = 0;
  Lifetime life;
  std::int64_t offset = 0;
};

// Gives each block the lowest offset that is free while it lives, the largest block first. Times
// run from 0 to times - 1. Returns the bytes of all.
std::int64_t place_blocks(std::vector<PlacedBlock>& blocks, int times);

}  // namespace keel
