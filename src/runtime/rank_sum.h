// Sums over the shards of all ranks, in the order of src/runtime/shard_tree.h. Every rank adds up a
// slice of the elements: it receives the slice of each subtree's sum, and gives the total to all.
// With as many shards as ranks, or with runs of shards that are whole subtrees, as many bytes
// travel as in an all-reduce by rings.
#pragma once

#include <span>
#include <vector>

#include "src/runtime/communicator.h"
#include "src/runtime/shard_tree.h"

namespace keel {

enum class Reduction {
  kFixed,  // the tree: the same bits for any number of ranks
  kFast,   // each rank adds up its own shards, and the library adds up the ranks
};

template <class T>
class RankSum {
 public:
  // There are at least as many shards as ranks.
  RankSum(Communicator& ranks, std::int64_t shards, Reduction reduction);

  // Takes what the next shard of this rank gives, an equal number of values each; all of them
  // come in order. `term` then has memory of an earlier one, or none.
  void add(std::vector<T>& term);
  // After all of them: the sum over the shards of all ranks, valid until the next add(). All ranks
  // call this.
  std::span<const T> total();

 private:
  // Values in the slice of one rank, of those from `begin` to `end`.
  struct Slice {
    std::size_t first = 0, size = 0;
  };
  Slice slice(Slice of, int rank) const;
  void sum_bucket(Slice bucket);
  void exchange(Slice bucket);
  std::size_t fold(ShardRange tree, std::size_t& next);

  Communicator& ranks_;
  std::int64_t shards_;
  Reduction reduction_;
  std::vector<std::vector<ShardRange>> subtrees_;  // by rank
  std::int64_t next_shard_ = 0;
  TreeSum<T> sum_;
  std::vector<std::vector<T>> roots_;     // the sums of this rank's subtrees
  std::size_t done_ = 0;                  // of them
  std::vector<std::vector<T>> received_;  // this rank's slice of all subtrees, in order
  std::vector<T> total_;
};

}  // namespace keel
