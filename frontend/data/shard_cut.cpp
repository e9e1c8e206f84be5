#include "frontend/data/shard_cut.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel::data {

ShardPlace shard_place(const ShardRange& shard_range, std::int64_t batches, std::int64_t step) {
  if (shard_range.is_whole() && shard_range.accumulate == 1) return {step, step, 0};
  const std::int64_t steps = batches * shard_range.count();
  check(step >= 0 && step < steps, ErrorKind::kUsage, "[shards] step: expected 0 to {}, got {}",
        steps - 1, step);
  const std::int64_t whole =
      shard_range.accumulate * shard_range.count();  // steps of a full update
  const std::int64_t first_batch = step / whole * shard_range.accumulate;
  const std::int64_t of_update = std::min(shard_range.accumulate, batches - first_batch);
  const std::int64_t within = step % whole;
  if (shard_range.by_batch) {
    return {first_batch + within / shard_range.count(), first_batch,
            shard_range.first + within % shard_range.count()};
  }
  return {first_batch + within % of_update, first_batch, shard_range.first + within / of_update};
}

std::span<const std::int64_t> shard_rows(std::span<const std::int64_t> rows, std::int64_t shard,
                                         const ShardRange& shard_range) {
  const auto begin = [&](std::int64_t s) {
    return std::size_t(s * std::ssize(rows) / shard_range.shards);
  };
  return rows.subspan(begin(shard), begin(shard + 1) - begin(shard));
}

std::int64_t shard_places(std::int64_t places, const ShardRange& shard_range) {
  return (places + shard_range.shards - 1) / shard_range.shards;
}

}  // namespace keel::data
