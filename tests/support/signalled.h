// The MLP on digits, whose process gets a signal while it reads a certain batch.
#pragma once

#include <cstdint>
#include <memory>

#include "models/mnist_mlp/model.h"
#include "tests/support/small_run.h"

namespace keel::test {

// The process's handler of SIGTERM.
void (*sigterm_handler())(int);

// Counts the batches of all splits that are read, and raises SIGTERM with number `at`, from 1 on,
// or with the next one for which the process has another handler than when this was made.
struct SignalAt {
  std::int64_t at = 0;  // 0: never
  std::int64_t read = 0;
  bool was_raised = false;
  void (*outer)(int) = sigterm_handler();

  void count();
};

class Signalled : public models::MnistMlp {
 public:
  explicit Signalled(std::shared_ptr<SignalAt> signal) : signal_(std::move(signal)) {}
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;

 private:
  std::shared_ptr<SignalAt> signal_;
};

// Two epochs of four batches of 64 rows, 8 hidden units, then the settings.
train::Job signalled(std::shared_ptr<SignalAt> signal, const Settings& settings);

}  // namespace keel::test
