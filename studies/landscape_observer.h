// The observer of the loss along its gradient (Landscape of gradient_probe.h) before an update,
// without dropout. A line has the update's "epoch", in parts, its "loss", and "loss_min",
// "loss_max", "gradient_min", "gradient_max", "beta" and "lipschitz".
#pragma once

#include "studies/gradient_probe.h"
#include "studies/observers.h"

namespace keel::study {

// Throws Error{kUsage} unless an update is one batch.
std::unique_ptr<train::Observer> landscape_observer(const train::Job& job,
                                                    const ObserverOptions& options);

struct LandscapeLine {
  std::int64_t step = 0;  // the number of the update
  double loss = 0;
  Landscape landscape;

  double loss_band() const { return landscape.loss_max - landscape.loss_min; }
  double gradient_band() const { return landscape.gradient_max - landscape.gradient_min; }
};
// A line that the observer wrote.
LandscapeLine landscape_line(std::int64_t step, const nlohmann::ordered_json& values);

}  // namespace keel::study
