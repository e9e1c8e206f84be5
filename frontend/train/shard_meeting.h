// Runs the programs of shards in step, where their graphs meet (src/ops/shard_parts.h).
#pragma once

#include <span>
#include <vector>

#include "src/runtime/communicator.h"
#include "src/runtime/program.h"
#include "src/runtime/shard_tree.h"

namespace keel::train {

class Meetings {
 public:
  // Those of every program of a shard, of which `like` is one.
  Meetings(Communicator& ranks, std::int64_t shards, const Program& like);

  bool any() const { return !bytes_.empty(); }
  // Runs the programs of this rank's shards, in their order; null stands for one without a row. All
  // ranks call this.
  void run(std::span<Program* const> programs);
  // Feeds a program that is to run by itself what the shards gave in their last run.
  void feed_last(Program& program) const;

 private:
  void meet(std::int64_t meeting, std::span<Program* const> programs);

  Communicator& ranks_;
  std::int64_t shards_;
  std::vector<std::string> names_;
  std::vector<std::size_t> bytes_;  // that one shard gives, by meeting
  std::vector<std::byte> mine_;
  std::vector<std::vector<std::byte>> all_;  // of all shards, by meeting
};

}  // namespace keel::train
