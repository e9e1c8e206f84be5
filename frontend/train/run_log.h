// The logs that a run writes: metrics.jsonl, TensorBoard events and plots.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/io/event_file.h"
#include "frontend/io/metrics_log.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_folder.h"

namespace keel::train {

class RunLog {
 public:
  // Opens the logs. Drops the lines after `resumed_at`, in a new run all lines, as if they had
  // never been written.
  RunLog(const RunFolder& folder, std::optional<std::int64_t> resumed_at);
  // A log that takes everything and writes nothing, of a process that another one writes for.
  RunLog() = default;

  struct Step {
    std::int64_t step, epoch;
    double loss, lr, grad_norm, items_per_second;
    std::map<std::string, double> monitored = {};  // by quantity
  };
  void step(const Step& step);
  // `split` is "train", "valid" or "test".
  void evaluation(std::int64_t step, std::int64_t epoch, const std::string& split,
                  const Evaluation& e);
  // For TensorBoard only: the run's settings, its result, and how it ended.
  void settings(const task::OptionValues& settings);
  void result(std::int64_t step, const std::string& what, const Evaluation& e);
  void end(bool finished);
  // An update that was not finite: the action taken, and how many updates were left out for it.
  struct NonFiniteUpdate {
    std::int64_t step, epoch;
    std::string_view action;
    double loss, grad_norm;
    std::int64_t skipped;
    std::string where;
  };
  void nonfinite(const NonFiniteUpdate& update);
  // Mean loss over an epoch of training.
  void epoch(std::int64_t step, std::int64_t epoch, double loss);
  // The time in seconds spent on what the log reports, including the run's earlier processes. Every
  // line has it.
  double seconds() const;
  // Returns when everything is on the disk.
  void sync() {
    if (metrics_) metrics_->sync();
  }
  // The name of a training for the titles of its plots, "mnist_mlp with layernorm on built-in
  // digits", and a caption with its data, how many rows they have, and its seed.
  struct Subject {
    std::string name, caption;
  };
  // Draws loss.svg and a plot of each metric from what was logged so far, along the epochs; along
  // the updates before the first epoch has ended.
  void plot(const Subject& subject, const std::vector<task::MetricInfo>& metrics) const;

 private:
  void write(std::int64_t step, nlohmann::ordered_json values);
  void scalar(const std::string& tag, std::int64_t step, double value);
  void scalars(const std::string& tag, std::int64_t step, const Evaluation& e);

  RunFolder folder_;
  std::optional<io::MetricsLog> metrics_;  // this and the next: absent if nothing is written
  std::optional<io::EventFile> events_;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace keel::train
