// An observer looks at a training while it runs, and changes no bit of it.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "frontend/train/steps.h"

namespace keel::train {

// An update of a run, and what there is to look at.
struct ObservedUpdate {
  Backend& backend;
  Variables& variables;  // parameters and states, to be read
  const Job& job;
  task::Stream& rows;  // of whole batches
  Arena& arena;        // may be used between updates
  Carries& carries;
  StepPlace place;
  std::int64_t total_steps = 0;

  // The number of the update, from 1 on; metrics.jsonl calls it "step".
  std::int64_t number() const { return place.step + 1; }
  // The epochs completed with the update, in parts.
  double epoch() const;
  // Whether the update is the last one of an epoch, or the last one of the run.
  bool ends_epoch() const;
  bool ends_run() const { return number() == total_steps; }
  // The number of items in all its micro-batches.
  double items() const;

 private:
  std::int64_t updates_of_epoch() const;
  std::int64_t micro_batches() const;
};

class Observer {
 public:
  // Takes the values of a line and the number of the update that they belong to.
  using Write = std::function<void(std::int64_t update, const nlohmann::ordered_json& values)>;

  virtual ~Observer() = default;

  // Names its file in a run's folder, observations/NAME.jsonl.
  virtual std::string name() const = 0;
  // Whether it looks at this update. The trainer waits for an update that is looked at, before it
  // and after it.
  virtual bool looks_at(const ObservedUpdate& update) const = 0;
  // Before the update: parameters and states are those that it starts from.
  virtual void before(const ObservedUpdate& /*update*/) {}
  // After the update, unless its loss or gradient was not finite.
  virtual void after(const ObservedUpdate& /*update*/, const StepResult& /*result*/) {}

  void write_to(Write write) { write_ = std::move(write); }

 protected:
  void write(const ObservedUpdate& update, const nlohmann::ordered_json& values) const {
    if (write_) write_(update.number(), values);
  }

 private:
  Write write_;
};

}  // namespace keel::train
