// The MLP on digits of which some batches are spoilt: updates that are not finite, where a test
// wants them.
#pragma once

#include <cmath>
#include <set>

#include "models/mnist_mlp/model.h"
#include "tests/support/small_run.h"

namespace keel::test {

// Batches, counted through all epochs, and what stands in one element of their images.
struct Poison {
  std::set<std::int64_t> batches;
  float value = NAN;
};

class Poisoned : public models::MnistMlp {
 public:
  explicit Poisoned(Poison poison) : poison_(std::move(poison)) {}
  std::unique_ptr<task::Splits> load(const task::DataRequest& request) const override;

 private:
  Poison poison_;
};

// Its loss overflows where a pixel is large, and no gradient does.
class Overflowing : public Poisoned {
 public:
  using Poisoned::Poisoned;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
};

// Two epochs of eight batches of 32 rows, 16 hidden units, then the settings.
template <class Model = Poisoned>
train::Config poisoned(const Poison& poison, const Settings& settings) {
  train::Config config(std::make_unique<Model>(poison));
  config.set("data.source", small_digits().string());
  config.set("model.hidden", "16");
  config.set("train.batch", "32");
  config.set("train.epochs", "2");
  apply_settings(config, settings);
  return config;
}

}  // namespace keel::test
