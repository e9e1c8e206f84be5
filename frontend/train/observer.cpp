#include "frontend/train/observer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace keel::train {

std::int64_t ObservedUpdate::updates_of_epoch() const {
  const std::int64_t accumulate = job.train().accumulate;
  return (rows.steps(static_cast<std::uint32_t>(place.epoch)) + accumulate - 1) / accumulate;
}

std::int64_t ObservedUpdate::micro_batches() const {
  const std::int64_t left = rows.steps(static_cast<std::uint32_t>(place.epoch)) - place.batch;
  return std::min(job.train().accumulate, left);
}

double ObservedUpdate::epoch() const {
  const std::int64_t done = place.batch / job.train().accumulate + 1;
  return double(place.epoch) + double(done) / double(updates_of_epoch());
}

bool ObservedUpdate::ends_epoch() const {
  return place.batch + micro_batches() == rows.steps(static_cast<std::uint32_t>(place.epoch));
}

double ObservedUpdate::items() const {
  double items = 0;
  for (std::int64_t i = 0; i < micro_batches(); ++i) {
    items += rows.items(static_cast<std::uint32_t>(place.epoch), place.batch + i);
  }
  return items;
}

}  // namespace keel::train
