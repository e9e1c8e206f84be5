// A data set in host memory: named columns whose first axis counts the rows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/tensor.h"

namespace keel::data {

class TensorDataset {
 public:
  // `source` says where the rows come from, for people: "data/mnist/t10k-images-idx3-ubyte.gz".
  explicit TensorDataset(std::string source) : source_(std::move(source)) {}

  // Adds a column (rows, ...). Throws Error{kUsage} for a scalar, a name already taken, or another
  // number of rows than the columns before it.
  void add(std::string name, Tensor column);

  // Throws Error{kUsage}, which names the columns that there are.
  const Tensor& column(std::string_view name) const;

  // 0 while there is no column.
  std::int64_t rows() const { return columns_.empty() ? 0 : columns_.front().second.shape()[0]; }
  const std::string& source() const { return source_; }

  // A copy of rows [first, first + count). Throws Error{kUsage} unless all of them exist.
  TensorDataset slice(std::int64_t first, std::int64_t count) const;
  // A copy of the first `count` rows.
  TensorDataset take(std::int64_t count) const { return slice(0, count); }

  // "built-in digits, test: 10000 rows; image u8(28, 28), label i32()"
  std::string description() const;

 private:
  std::string source_;
  std::vector<std::pair<std::string, Tensor>> columns_;
};

// A part that a published data set has a file for.
enum class Part { kTrain, kTest };

struct TrainTest {
  TensorDataset train, test;
};

}  // namespace keel::data
