// The training steps of a model: forward, backward, clipping, optimizer and state, on the batches
// that `keel train` would give it.
#pragma once

#include <map>

#include "frontend/compare/walk/subject.h"
#include "frontend/train/feeder.h"
#include "frontend/train/job.h"

namespace keel::compare {

struct ModelSubjectOptions {
  bool unfused = false;
  // A backend whose own passes also run (images stored channels last, weights in panels); or null.
  const Backend* as_run = nullptr;
};

class ModelSubject : public Subject {
 public:
  // The job has to outlive it; the reference computes first values that depend on data. Each step
  // is an update of one batch, whatever train.accumulate says.
  ModelSubject(Backend& reference, const train::Job& job, const ModelSubjectOptions& options = {});

  const std::string& name() const override { return name_; }
  SubjectStep at(std::int64_t step) override;
  const Feeds& first_values() const override { return first_values_; }
  std::uint64_t seed() const override { return static_cast<std::uint64_t>(job_.train().seed); }

 private:
  void initialize(Backend& reference);
  // The batch of a step, which may be in any epoch.
  const task::Batch& batch_of(std::int64_t step);
  const Graph& graph_of(const task::Sizes& sizes);
  // Updates in the whole run; the schedule of the learning rate depends on it.
  std::int64_t total_steps() const;

  std::string name_;
  const train::Job& job_;
  ModelSubjectOptions options_;
  std::unique_ptr<task::Stream> rows_;
  train::Feeder feeder_;
  std::map<task::Sizes, Graph> graphs_;
  Feeds first_values_;
};

}  // namespace keel::compare
