#include "frontend/data/shard_cut.h"

#include <algorithm>

#include "src/core/error.h"

namespace keel::data {

ShardPlace shard_place(const task::Portion& portion, std::int64_t batches, std::int64_t step) {
  if (portion.is_whole() && portion.accumulate == 1) return {step, step, 0};
  const std::int64_t steps = batches * portion.count();
  check(step >= 0 && step < steps, ErrorKind::kUsage, "[shards] step: expected 0 to {}, got {}",
        steps - 1, step);
  const std::int64_t whole = portion.accumulate * portion.count();  // steps of a full update
  const std::int64_t first_batch = step / whole * portion.accumulate;
  const std::int64_t of_update = std::min(portion.accumulate, batches - first_batch);
  const std::int64_t within = step % whole;
  if (portion.by_batch) {
    return {first_batch + within / portion.count(), first_batch,
            portion.first + within % portion.count()};
  }
  return {first_batch + within % of_update, first_batch, portion.first + within / of_update};
}

std::span<const std::int64_t> shard_rows(std::span<const std::int64_t> rows, std::int64_t shard,
                                         const task::Portion& portion) {
  const auto begin = [&](std::int64_t s) {
    return std::size_t(s * std::ssize(rows) / portion.shards);
  };
  return rows.subspan(begin(shard), begin(shard + 1) - begin(shard));
}

std::int64_t shard_places(std::int64_t places, const task::Portion& portion) {
  return (places + portion.shards - 1) / portion.shards;
}

}  // namespace keel::data
