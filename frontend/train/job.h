// A job of a run: a recipe, and the network that was made from it.
#pragma once

#include <memory>
#include <optional>

#include "frontend/train/config.h"

namespace keel::train {

class Job {
 public:
  // Reads the training data and makes the network for it. Throws as task::Task::prepare.
  explicit Job(Config config);
  // The network of a checkpoint with these assets; the data are read when they are first asked for.
  Job(Config config, task::Assets assets);

  const Config& config() const { return config_; }
  // The job with other settings ("section.key" and value) and with the assets of its network.
  // Throws Error{kUsage} for settings that are unknown or do not fit. This job ends.
  Job with(const task::OptionValues& settings) &&;
  // From now on the data are read only for this split, as task::DataRequest::only says.
  void read_only(task::Split split) { only_ = split; }
  // Settles train.compute where it is auto.
  void choose(Compute compute) { config_.set("train.compute", choice_text(compute)); }
  const TrainOptions& train() const { return config_.train(); }
  const DataOptions& data() const { return config_.data(); }
  const task::Task& task() const { return config_.task(); }
  const task::Network& network() const { return *network_; }
  // Only one thread may call this. Throws as task::Task::prepare.
  const task::Splits& splits() const;

 private:
  Config config_;
  std::optional<task::Split> only_;
  task::Assets assets_;
  std::shared_ptr<const task::Network> network_;
  mutable std::shared_ptr<const task::Splits> splits_;
};

}  // namespace keel::train
