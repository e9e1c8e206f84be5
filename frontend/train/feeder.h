// Copies the rows of a batch from a data set into a program's inputs.
#pragma once

#include <span>
#include <vector>

#include "frontend/task/model.h"
#include "src/runtime/program.h"

namespace keel::train {

class Feeder {
 public:
  // Throws Error{kUsage} when a column does not fit its input.
  Feeder(const std::vector<task::InputSpec>& inputs, const data::Dataset& dataset,
         std::int64_t batch);

  // Feeds every model input with these `batch` rows. Allocates nothing on a backend that stores
  // values as they are declared.
  void feed(Program& program, std::span<const std::int64_t> rows);

 private:
  struct Column {
    task::InputSpec spec;
    const Tensor* source;
    Tensor staging;  // (batch, row)
  };
  std::vector<Column> columns_;
};

}  // namespace keel::train
