#include "frontend/train/job.h"

#include <utility>

namespace keel::train {

Job::Job(Config config) : config_(std::move(config)) {
  task::Prepared prepared = config_.task().prepare(config_.data().request());
  network_ = std::move(prepared.network);
  splits_ = std::move(prepared.splits);
}

Job::Job(Config config, task::Assets assets)
    : config_(std::move(config)),
      assets_(std::move(assets)),
      network_(config_.task().restore(assets_)) {}

Job Job::with(const task::OptionValues& settings) && {
  task::Assets assets = network_->assets();
  for (const auto& [key, value] : settings) config_.set(key, value);
  config_.validate();
  return {std::move(config_), std::move(assets)};
}

const task::Splits& Job::splits() const {
  if (!splits_) {
    task::DataRequest request = config_.data().request();
    request.only = only_;
    splits_ = config_.task().prepare(request, &assets_).splits;
  }
  return *splits_;
}

}  // namespace keel::train
