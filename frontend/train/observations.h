// The observers of a run, and the files that they write into the run's folder "observations".
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "frontend/io/metrics_log.h"
#include "frontend/train/observer.h"
#include "frontend/train/run_folder.h"

namespace keel::train {

class Observations {
 public:
  explicit Observations(std::vector<Observer*> observers) : observers_(std::move(observers)) {}

  // Opens the files. Drops the lines after `resumed_at`, in a new run all lines, as if they had
  // never been written.
  void open(const RunFolder& folder, std::optional<std::int64_t> resumed_at);
  // Chooses those that look at this update; returns whether any does.
  bool choose(const ObservedUpdate& update);
  void before(const ObservedUpdate& update) const;
  // Whether any looks at the update that was last chosen for, and this is its place.
  bool look_at(const StepPlace& place) const { return !looking_.empty() && step_ == place.step; }
  void after(const ObservedUpdate& update, const StepResult& result) const;
  // Returns when all lines are on the disk.
  void sync();

 private:
  std::vector<Observer*> observers_, looking_;
  std::int64_t step_ = -1;
  std::vector<std::unique_ptr<io::MetricsLog>> files_;
};

}  // namespace keel::train
