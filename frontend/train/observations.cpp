#include "frontend/train/observations.h"

#include <algorithm>
#include <iterator>

namespace keel::train {

void Observations::open(const RunFolder& folder, std::optional<std::int64_t> resumed_at) {
  if (observers_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder.observations(), error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.observations().string(),
        error.message());
  for (Observer* observer : observers_) {
    files_.push_back(std::make_unique<io::MetricsLog>(folder.observation(observer->name()),
                                                      resumed_at.value_or(-1)));
    observer->write_to(
        [file = files_.back().get()](std::int64_t update, const nlohmann::ordered_json& values) {
          file->write(update, values);
        });
  }
}

bool Observations::choose(const ObservedUpdate& update) {
  step_ = update.place.step;
  looking_.clear();
  std::ranges::copy_if(observers_, std::back_inserter(looking_),
                       [&](const Observer* observer) { return observer->looks_at(update); });
  return !looking_.empty();
}

void Observations::before(const ObservedUpdate& update) const {
  for (Observer* observer : looking_) observer->before(update);
}

void Observations::after(const ObservedUpdate& update, const StepResult& result) const {
  for (Observer* observer : looking_) observer->after(update, result);
}

void Observations::sync() {
  for (const auto& file : files_) file->sync();
}

}  // namespace keel::train
