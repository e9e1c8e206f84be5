// The digits that both MNIST models train on: the real files, or the built-in generator.
#pragma once

#include "frontend/data/table_stream.h"
#include "frontend/task/model.h"

namespace keel::models {

enum class Validation { kFirst, kLast };  // which training rows are held out

// Columns "image" u8 (n, 28, 28) and "label" i32 (n). 5,000 of the 60,000 training images, or a
// twelfth of fewer, are held out for validation. Built-in: 12,000 training and 2,000 test digits.
// Making a table throws as the readers, and Error{kBadInput} for fewer than 12 training images.
std::unique_ptr<data::TableSplits> load_digits(const task::DataRequest& request,
                                               Validation validation,
                                               std::vector<data::TableColumn> columns);

}  // namespace keel::models
