// Where a batch is cut into shards, and in which order a stream gives them (ShardRange).
#pragma once

#include <span>

#include "frontend/data/stream.h"

namespace keel::data {

struct ShardPlace {
  std::int64_t batch = 0;        // of the epoch
  std::int64_t first_batch = 0;  // of its update
  std::int64_t shard = 0;
};

// The place of step `step` of a stream of shards, in an epoch of so many batches.
ShardPlace shard_place(const ShardRange& shard_range, std::int64_t batches, std::int64_t step);

// Shard s of n rows: from row floor(s n / shards) to row floor((s + 1) n / shards).
std::span<const std::int64_t> shard_rows(std::span<const std::int64_t> rows, std::int64_t shard,
                                         const ShardRange& shard_range);

// The places of every shard of a batch with padding: enough for any shard of its rows.
std::int64_t shard_places(std::int64_t places, const ShardRange& shard_range);

}  // namespace keel::data
