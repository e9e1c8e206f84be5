#include "frontend/data/table_rows.h"

#include <array>
#include <utility>

#include "frontend/data/fixed_batches.h"

namespace keel::data {
namespace {

void check_column(const TableColumn& column, const TensorDataset& dataset) {
  const Tensor& source = dataset.column(column.name);
  const std::int64_t own = source.elements() / std::max<std::int64_t>(dataset.rows(), 1);
  const bool converts = source.dtype() == DType::kU8 && column.dtype == DType::kF32;
  check(own == column.row.elements() && (converts || source.dtype() == column.dtype),
        ErrorKind::kUsage, "input {}: expected rows of {}, got {}", column.name,
        TensorType{column.dtype, column.row}.text(), source.type().text());
}

}  // namespace

std::vector<Input> inputs_of(const std::vector<TableColumn>& columns, const Sizes& sizes) {
  std::vector<Input> inputs;
  for (const TableColumn& column : columns) {
    std::vector<std::int64_t> shape{sizes.at(0)};
    shape.insert(shape.end(), column.row.sizes().begin(), column.row.sizes().end());
    inputs.push_back({column.name, {column.dtype, Shape(shape)}});
  }
  return inputs;
}

TableRows::TableRows(TensorDataset dataset, std::vector<TableColumn> columns)
    : Dataset({dataset.source()}), dataset_(std::move(dataset)), columns_(std::move(columns)) {
  for (const TableColumn& column : columns_) {
    check_column(column, dataset_);
    sources_.push_back(&dataset_.column(column.name));
  }
}

std::unique_ptr<BatchSampler> TableRows::plan(const StreamOptions& options) const {
  return std::make_unique<FixedBatches>(dataset_.rows(), options);
}

void TableRows::put(Batch& batch, const RowVisit& visit) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Tensor& source = *sources_[i];
    Tensor& value = batch.values[i];
    const auto size = std::size_t(columns_[i].row.elements());
    const std::size_t first = std::size_t(visit.place) * size;
    const std::span one(&visit.row, 1);
    if (source.dtype() == value.dtype()) {
      const auto element = std::size_t(size_of(value.dtype()));
      gather(source, one, {value.data() + first * element, size * element});
    } else {
      gather(source, one, columns_[i].affine, value.as<float>().subspan(first, size));
    }
  }
}

TableSplits::TableSplits(std::vector<TableColumn> columns, Make train, Make valid, Make test)
    : DatasetSplits(
          [columns = std::move(columns),
           make = std::array{std::move(train), std::move(valid), std::move(test)}](Split split) {
            return std::make_shared<const TableRows>(make[std::size_t(split)](), columns);
          }) {}

}  // namespace keel::data
