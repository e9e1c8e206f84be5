// Runs the programs of shards in step, where their graphs meet (src/ops/shard_parts.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/runtime/communicator.h"
#include "src/runtime/program.h"
#include "src/runtime/shard_tree.h"

namespace keel::train {

// One shard of one micro-batch of an update, as it is computed.
struct ShardInstance {
  Program* program = nullptr;  // null: it has no row
  // Where it keeps values while others run in the same arena; null: it has an arena to itself.
  Memory* kept = nullptr;
};

class Collectives {
 public:
  // The collectives of every program of a shard, of which `like` is one, in so many micro-batches
  // of as many shards.
  Collectives(Communicator& ranks, std::int64_t shards, std::int64_t micro_batches,
              const Program& like);

  bool any() const { return !bytes_.empty(); }
  // Runs the instances of this rank: its shards of the first micro-batch, then of the next. Before
  // the first part of an instance it calls `begin` with its number, which feeds the program, and
  // after each part `end` with the part and the number: then the outputs of the part can be read.
  // All ranks call this.
  using Begin = std::function<void(std::size_t)>;
  using End = std::function<void(std::int64_t, std::size_t)>;
  void run(std::span<ShardInstance> instances, const Begin& begin, const End& end);
  // Feeds a program that is to run by itself what the shards gave in their last run.
  void feed_last(Program& program) const;

 private:
  void run_part(std::int64_t part, const ShardInstance& instance);
  void feed_read(std::int64_t part, const ShardInstance& instance);
  std::span<std::byte> given_by(std::int64_t collective, std::size_t instance);
  void gather(std::int64_t collective);

  Communicator& ranks_;
  std::int64_t shards_, micro_batches_;
  std::vector<std::string> names_;
  std::vector<std::size_t> bytes_;  // that one instance gives, by collective
  std::vector<std::byte> mine_, by_rank_;
  std::vector<std::vector<std::byte>> all_;  // of all instances, by collective
};

}  // namespace keel::train
