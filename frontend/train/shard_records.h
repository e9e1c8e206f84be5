// The results that each shard of an update gives besides its sums, and their summary over all
// shards.
#pragma once

#include <cstdint>
#include <vector>

#include "src/runtime/communicator.h"

namespace keel::train {

struct ShardRecord {
  std::vector<double> losses;  // one for all of its micro-batches, or one for each
  double with_rows = 0;        // its micro-batches that have rows
  std::vector<double> monitored, whole;
};

class ShardRecords {
 public:
  // A record has so many values of each kind.
  ShardRecords(Communicator& ranks, std::int64_t shards, std::size_t monitored, std::size_t whole,
               std::size_t losses = 1);

  // The record of a shard that has run nothing yet.
  ShardRecord empty() const;
  // Makes these records those of all shards, from those of this rank's. The signals that the ranks
  // have received ride on them. All ranks call this.
  void exchange(const std::vector<ShardRecord>& own, int signal);

  // In the order of src/runtime/shard_tree.h, those of one micro-batch after those of another.
  double loss() const;
  double with_rows() const;               // of all
  int signal() const { return signal_; }  // of any rank, or 0
  std::vector<double> monitored() const;  // the largest of all
  // The largest values of all shards. A value that is the same in every shard that has rows is the
  // largest, too.
  std::vector<double> whole() const;

 private:
  Communicator& ranks_;
  std::int64_t shards_;
  std::size_t watched_, whole_, losses_;
  std::vector<ShardRecord> all_;
  int signal_ = 0;
};

}  // namespace keel::train
