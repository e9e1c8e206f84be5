// Which bytes of an arena are taken at which times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel {

// From the first to the last time, both included.
struct Lifetime {
  int first = 0, last = 0;
};

// Bytes from `begin` up to, but without, `end`.
struct ByteRange {
  std::int64_t begin = 0, end = 0;
};

// Disjoint ranges of bytes, ascending; those that touch are one.
class ByteSet {
 public:
  void add(ByteRange range);
  std::span<const ByteRange> ranges() const { return ranges_; }

 private:
  std::vector<ByteRange> ranges_;
};

// A binary tree over time. A lifetime is cut into the fewest ranges of time that are nodes of the
// tree, O(log times) of them. Where memory is packed densely the sets of a node shrink to a few
// ranges, which makes both operations nearly logarithmic.
class Occupancy {
 public:
  // Times run from 0 to times - 1.
  explicit Occupancy(int times);

  void take(Lifetime life, ByteRange range);
  // The lowest offset from which on `bytes` bytes are free throughout `life`.
  std::int64_t lowest_free(Lifetime life, std::int64_t bytes) const;

 private:
  struct Taken {
    ByteSet throughout;  // by lifetimes that were cut into this node
    ByteSet sometime;    // by those that were cut into this node or one below
  };

  template <class Visit>
  void visit_pieces(Lifetime life, Visit visit) const;
  template <class Visit>
  void visit_bounds(Lifetime life, Visit visit) const;

  int leaves_;
  std::vector<Taken> nodes_;  // the children of node i are 2 i and 2 i + 1, the root is 1
};

}  // namespace keel
