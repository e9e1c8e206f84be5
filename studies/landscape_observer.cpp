#include "studies/landscape_observer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace keel::study {
namespace {

struct LandscapeName {
  const char* name;
  double Landscape::*field;
};
constexpr LandscapeName kLandscapeNames[] = {{"loss_min", &Landscape::loss_min},
                                             {"loss_max", &Landscape::loss_max},
                                             {"gradient_min", &Landscape::gradient_min},
                                             {"gradient_max", &Landscape::gradient_max},
                                             {"beta", &Landscape::beta},
                                             {"lipschitz", &Landscape::lipschitz}};

class LandscapeObserver final : public train::Observer {
 public:
  explicit LandscapeObserver(const ObserverOptions& options) : options_(options) {}

  std::string name() const override { return "landscape"; }
  bool looks_at(const train::ObservedUpdate& update) const override {
    return options_.fall_on(update);
  }

  void before(const train::ObservedUpdate& update) override {
    if (!probe_) probe_.emplace(update.backend, update.job);
    probe_->take(update);
    found_ = landscape_along([this](const Weights& theta) { return probe_->at(theta); },
                             probe_->read(update.variables), update.job.train().lr);
  }

  void after(const train::ObservedUpdate& update, const train::StepResult& result) override {
    nlohmann::ordered_json values{{"epoch", update.epoch()}, {"loss", result.loss}};
    for (const LandscapeName& what : kLandscapeNames) values[what.name] = found_.*what.field;
    write(update, values);
  }

 private:
  ObserverOptions options_;
  std::optional<GradientProbe> probe_;
  Landscape found_;
};

}  // namespace

std::unique_ptr<train::Observer> landscape_observer(const train::Job& job,
                                                    const ObserverOptions& options) {
  const train::TrainOptions& train = job.train();
  check(
      train.accumulate == 1, ErrorKind::kUsage,
      "train.observe: landscape: expected train.accumulate = 1, because it takes an update as one "
      "batch, got {}",
      train.accumulate);
  check(train.shards == 1 || train.statistics == train::ShardStatistics::kSynchronised,
        ErrorKind::kUsage,
        "train.observe: landscape: expected train.statistics = synchronised, because it takes an "
        "update as one batch, got local");
  return std::make_unique<LandscapeObserver>(options);
}

LandscapeLine landscape_line(std::int64_t step, const nlohmann::ordered_json& values) {
  const auto number = [&](const char* name) {
    const auto& value = values.at(name);
    return value.is_null() ? NAN : value.get<double>();
  };
  LandscapeLine line{.step = step, .loss = number("loss"), .landscape = {}};
  for (const LandscapeName& what : kLandscapeNames) line.landscape.*what.field = number(what.name);
  return line;
}

}  // namespace keel::study
