// Loss and error rate of a model on a whole data set, in evaluation mode.
#pragma once

#include <map>
#include <memory>

#include "frontend/train/config.h"
#include "frontend/train/feeder.h"

namespace keel::train {

struct Evaluation {
  double loss = 0;   // mean over the rows
  double error = 0;  // wrongly classified rows / rows
  std::int64_t rows = 0;
};

class Evaluator {
 public:
  Evaluator(Backend& backend, Variables& variables, const Config& config)
      : backend_(backend), variables_(variables), config_(config) {}

  // Creates the parameters and states of evaluation, so that a checkpoint can be loaded into them.
  void declare();
  // Batches of 256 rows and a smaller last one; one program is compiled for each size and kept.
  Evaluation run(const data::Dataset& dataset);

 private:
  Program& program(std::int64_t batch);

  Backend& backend_;
  Variables& variables_;
  const Config& config_;
  std::map<std::int64_t, std::unique_ptr<Program>> programs_;
};

}  // namespace keel::train
