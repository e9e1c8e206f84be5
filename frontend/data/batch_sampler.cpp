#include "frontend/data/batch_sampler.h"

#include "src/core/error.h"

namespace keel::data {

const BatchSampler::Epoch& BatchSampler::epoch_of(std::uint32_t epoch) {
  if (!varies_) epoch = 0;
  Kept& kept = kept_[epoch % 2];
  if (kept.epoch != epoch) {
    kept.epoch.reset();  // until it is whole
    plan(epoch, kept.planned);
    kept.epoch = epoch;
  }
  return kept.planned;
}

std::span<const std::int64_t> BatchSampler::rows_at(std::uint32_t epoch, std::int64_t step) {
  const std::int64_t steps = this->steps(epoch);
  check(step >= 0 && step < steps, ErrorKind::kUsage, "[batches] step: expected 0 to {}, got {}",
        steps - 1, step);
  const Epoch& planned = epoch_of(epoch);
  const Cut& cut = planned.cuts[std::size_t(step)];
  return std::span(planned.order).subspan(cut.first, cut.count);
}

void BatchSampler::at(std::uint32_t epoch, std::int64_t step, PlannedBatch& planned) {
  planned.rows = rows_at(epoch, step);
  const Sizes lengths = lengths_of(planned.rows, epoch);
  planned.sizes.assign(1, capacity(std::ssize(planned.rows), lengths));
  planned.sizes.insert(planned.sizes.end(), lengths.begin(), lengths.end());
}

PlannedBatch BatchSampler::at(std::uint32_t epoch, std::int64_t step) {
  PlannedBatch planned;
  at(epoch, step, planned);
  return planned;
}

PlannedBatch BatchSampler::pick(std::span<const std::int64_t> rows) const {
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < rows_, ErrorKind::kUsage, "[batches] row: expected 0 to {}, got {}",
          rows_ - 1, row);
  }
  return {with_lengths(std::ssize(rows), lengths_of(rows, 0)), rows};
}

Sizes with_lengths(std::int64_t places, const Sizes& lengths) {
  Sizes sizes{places};
  sizes.insert(sizes.end(), lengths.begin(), lengths.end());
  return sizes;
}

}  // namespace keel::data
