// The digits that models of MNIST train on: the real files, or the built-in generator.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/table_rows.h"
#include "frontend/task/task.h"

namespace keel::models {

enum class Validation { kFirst, kLast };  // which training rows are held out

// Columns "image" u8 (n, 28, 28) and "label" i32 (n). 5,000 of the 60,000 training images, or a
// twelfth of fewer, are held out for validation. Built-in: 12,000 training and 2,000 test digits.
// Making a table throws as the readers, and Error{kBadInput} for fewer than 12 training images.
// `change`, if given, makes a table of other columns from each of the parts "train", "valid" and
// "test".
using ChangeDigits =
    std::function<data::TensorDataset(const data::TensorDataset&, std::string_view part)>;
std::unique_ptr<data::TableSplits> load_digits(const task::DataRequest& request,
                                               Validation validation,
                                               std::vector<data::TableColumn> columns,
                                               const ChangeDigits& change = {});

// A decoder that names the digit in each picture, in grey and brought to 28 x 28 pixels
// (data/picture_scale.h). MNIST's digits are white on black. Throws as io::read_picture.
std::unique_ptr<task::Decoder> digit_decoder(std::span<const std::string> files,
                                             std::vector<data::TableColumn> columns);

}  // namespace keel::models
