// The one order in which the values of an update's shards are added up, no matter which rank
// computes them.
//
// To add up n > 1 terms in a row, the first m = 2^k are added up, the largest power of two below n,
// then the n - m others, both in this same way, and then the two sums. So the order depends only on
// n. A rank owns some shards in a row; it adds up those subtrees that are wholly its own, and only
// their sums travel.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace keel {

// The terms from `first` up to and without `end`.
struct ShardRange {
  std::int64_t first = 0, end = 0;

  std::int64_t count() const { return end - first; }
  // Where the tree of these terms divides them; they are at least two.
  std::int64_t middle() const {
    return first + std::int64_t(std::bit_floor(std::uint64_t(count() - 1)));
  }
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

// The shards that a rank owns: as many as any other, or one more or less.
ShardRange shards_of_rank(std::int64_t shards, int rank, int ranks);

// The largest subtrees of all `shards` that lie within a range, in order.
std::vector<ShardRange> whole_subtrees(ShardRange within, std::int64_t shards);

// a[i] += b[i]. Blocks of a fixed size are what the compiler makes vectors of.
template <class T>
void add_to(std::span<T> a, std::span<const T> b) {
  constexpr std::size_t kBlock = 16;
  std::size_t i = 0;
  for (; i + kBlock <= a.size(); i += kBlock) {
    T* __restrict to = a.data() + i;
    const T* __restrict from = b.data() + i;
    for (std::size_t j = 0; j < kBlock; ++j) to[j] += from[j];
  }
  for (; i < a.size(); ++i) a[i] += b[i];
}

// Adds up vectors of equal sizes that come one after another. It holds one partial sum for each
// power of two in the number of those that came, and the memory of all of them for the next sum.
template <class T>
class TreeSum {
 public:
  // Takes the next term. `term` then has memory of an earlier one, or none.
  void add(std::vector<T>& term) {
    if (used_ == parts_.size()) parts_.emplace_back();
    std::swap(parts_[used_].values, term);
    parts_[used_++].terms = 1;
    while (used_ > 1 && parts_[used_ - 2].terms == parts_[used_ - 1].terms) join();
  }
  // The sum of the terms since the last call, of which there is at least one, valid until the next
  // add().
  std::vector<T>& sum() {
    while (used_ > 1) join();
    used_ = 0;
    return parts_.front().values;
  }

 private:
  struct Part {
    std::vector<T> values;
    std::int64_t terms = 0;
  };
  void join() {
    Part& left = parts_[used_ - 2];
    Part& right = parts_[used_ - 1];
    add_to(std::span(left.values), std::span<const T>(right.values));
    left.terms += right.terms;
    --used_;
  }

  std::vector<Part> parts_;
  std::size_t used_ = 0;
};

}  // namespace keel
