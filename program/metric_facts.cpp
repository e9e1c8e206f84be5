#include "program/metric_facts.h"

#include "frontend/train/config.h"
#include "program/common.h"

namespace keel::cli {

std::vector<report::MetricFacts> metric_facts(const report::Run& run) {
  std::vector<report::MetricFacts> facts;
  try {
    train::Config config(make_task(run.model));
    for (const auto& [key, value] : run.settings) {
      if (key.starts_with("model.")) config.set(key, value);
    }
    for (const task::MetricInfo& info : config.task().metrics()) {
      facts.push_back({info.name, info.unit, info.higher_is_better, info.has_direction});
    }
  } catch (const Error&) {
    facts.clear();
  }
  return facts;
}

}  // namespace keel::cli
