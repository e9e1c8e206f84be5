// The MLP on digits of which some batches are spoilt, so that updates are not finite where a test
// needs that.
#pragma once

#include <cmath>
#include <set>

#include "models/mnist_mlp/model.h"
#include "tests/support/small_run.h"

namespace keel::test {

// Batches, counted through all epochs, and the value of one element of their images.
struct Poison {
  std::set<std::int64_t> batches;
  float value = NAN;
};

class Poisoned : public models::MnistMlp {
 public:
  explicit Poisoned(Poison poison) : poison_(std::move(poison)) {}
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;

 private:
  Poison poison_;
};

// Its loss overflows where a pixel is large, and no gradient does.
class Overflowing : public Poisoned {
 public:
  using Poisoned::Poisoned;
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override;
};

// Two epochs of eight batches of 32 rows, 16 hidden units, then the settings.
template <class Task = Poisoned>
train::Job poisoned(const Poison& poison, const Settings& settings) {
  return job_of(std::make_unique<Task>(poison),
                Settings{"data.source=" + small_digits().string(), "model.hidden=16",
                         "train.batch=32", "train.epochs=2"} +
                    settings);
}

}  // namespace keel::test
