// Feeds the batches of a stream to programs.
#pragma once

#include <string>
#include <vector>

#include "frontend/task/model.h"
#include "src/runtime/program.h"

namespace keel::train {

class Feeder {
 public:
  explicit Feeder(const task::Model& model);
  // Of the inputs of another network than the model's own.
  explicit Feeder(const std::vector<task::Input>& inputs);

  // Feeds the model's inputs. Allocates nothing on a backend that stores values as they are
  // declared. Throws Error{kUsage} when the batch is not of the program's sizes.
  void feed(Program& program, const task::Batch& batch) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace keel::train
