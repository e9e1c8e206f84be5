// Columns: adding, finding and copying rows.
#include "frontend/data/tensor_dataset.h"

#include <algorithm>

namespace keel::data {
namespace {

// The shape of one row: all axes but the first.
Shape row_shape(const Tensor& column) { return Shape(column.shape().sizes().subspan(1)); }

}  // namespace

void TensorDataset::add(std::string name, Tensor column) {
  check(column.shape().rank() > 0, ErrorKind::kUsage, "[dataset] {}: expected rows, got a scalar",
        name);
  check(columns_.empty() || column.shape()[0] == rows(), ErrorKind::kUsage,
        "[dataset] {}: expected {} rows, got {}", name, rows(), column.shape()[0]);
  for (const auto& [taken, tensor] : columns_) {
    check(taken != name, ErrorKind::kUsage, "[dataset] {}: expected a new name, got one in use",
          name);
  }
  columns_.emplace_back(std::move(name), std::move(column));
}

const Tensor& TensorDataset::column(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const auto& [known, tensor] : columns_) {
    if (known == name) return tensor;
    names.push_back(known);
  }
  fail(ErrorKind::kUsage, "[dataset] {}: expected a column of ({}), got '{}'", source_,
       fmt::join(names, ", "), name);
}

TensorDataset TensorDataset::slice(std::int64_t first, std::int64_t count) const {
  check(first >= 0 && first <= rows() && count >= 0 && count <= rows() - first, ErrorKind::kUsage,
        "[dataset] {}: expected rows within {}, got {} from {}", source_, rows(), count, first);
  TensorDataset result(source_);
  for (const auto& [name, tensor] : columns_) {
    const std::int64_t row_bytes = TensorType{tensor.dtype(), row_shape(tensor)}.bytes();
    Tensor part(tensor.dtype(), tensor.shape().with(0, count));
    std::copy_n(tensor.data() + first * row_bytes, count * row_bytes, part.data());
    result.add(name, std::move(part));
  }
  return result;
}

std::string TensorDataset::description() const {
  std::vector<std::string> parts;
  for (const auto& [name, tensor] : columns_) {
    parts.push_back(
        fmt::format("{} {}", name, TensorType{tensor.dtype(), row_shape(tensor)}.text()));
  }
  return fmt::format("{}: {} rows; {}", source_, rows(), fmt::join(parts, ", "));
}

}  // namespace keel::data
