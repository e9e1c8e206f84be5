#include "frontend/data/table_stream.h"

#include <utility>

namespace keel::data {
namespace {

void expect_fits(const TableColumn& column, const Dataset& dataset) {
  const Tensor& source = dataset.column(column.name);
  const std::int64_t own = source.elements() / std::max<std::int64_t>(dataset.rows(), 1);
  const bool converts = source.dtype() == DType::kU8 && column.dtype == DType::kF32;
  check(own == column.row.elements() && (converts || source.dtype() == column.dtype),
        ErrorKind::kUsage, "input {}: expected rows of {}, got {}", column.name,
        TensorType{column.dtype, column.row}.text(), source.type().text());
}

BatchOptions batch_options(const task::StreamOptions& options) {
  return {.batch = options.batch,
          .shuffle = options.shuffle.has_value(),
          .keep_partial = !options.shuffle.has_value(),
          .seed = options.shuffle.value_or(0)};
}

}  // namespace

std::vector<task::Input> inputs_of(const std::vector<TableColumn>& columns,
                                   const task::Sizes& sizes) {
  std::vector<task::Input> inputs;
  for (const TableColumn& column : columns) {
    std::vector<std::int64_t> shape{sizes.at(0)};
    shape.insert(shape.end(), column.row.sizes().begin(), column.row.sizes().end());
    inputs.push_back({column.name, {column.dtype, Shape(shape)}});
  }
  return inputs;
}

TableStream::TableStream(std::shared_ptr<const Dataset> rows, std::vector<TableColumn> columns,
                         const task::StreamOptions& options)
    : dataset_(std::move(rows)),
      columns_(std::move(columns)),
      options_(options),
      batcher_(dataset_->rows(), batch_options(options)) {
  for (const TableColumn& column : columns_) {
    expect_fits(column, *dataset_);
    sources_.push_back(&dataset_->column(column.name));
  }
}

double TableStream::items(std::uint32_t, std::int64_t step) {
  return double(std::min(options_.batch, dataset_->rows() - step * options_.batch));
}

const task::Batch& TableStream::at(std::uint32_t epoch, std::int64_t step) {
  return pick(batcher_.rows(epoch, step));
}

const task::Batch& TableStream::pick(std::span<const std::int64_t> rows) {
  const std::int64_t count = std::ssize(rows);
  batch_.rows.assign(rows.begin(), rows.end());
  batch_.items = double(count);
  if (batch_.sizes.empty() || batch_.sizes[0] != count) {
    batch_.sizes = {count};
    batch_.values.clear();
    for (const task::Input& input : inputs_of(columns_, batch_.sizes)) {
      batch_.values.emplace_back(input.type);
    }
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Tensor& source = *sources_[i];
    Tensor& value = batch_.values[i];
    if (source.dtype() == value.dtype()) {
      gather(source, rows, {value.data(), std::size_t(value.bytes())});
    } else {
      gather(source, rows, columns_[i].affine, value.as<float>());
    }
  }
  return batch_;
}

std::vector<task::Sizes> TableStream::shapes() const {
  const std::int64_t all = dataset_->rows(), batch = std::min(options_.batch, all);
  std::vector<task::Sizes> shapes{{batch}};
  if (!options_.shuffle && all % batch != 0) shapes.push_back({all % batch});
  return shapes;
}

std::vector<task::LeftOut> TableStream::left_out() const {
  const std::int64_t rest = dataset_->rows() % options_.batch;
  if (!options_.shuffle || rest == 0) return {};
  return {{rest, fmt::format("do not fill a batch of {}", options_.batch)}};
}

TableSplits::TableSplits(std::vector<TableColumn> columns, Make train, Make valid, Make test)
    : columns_(std::move(columns)), make_{std::move(train), std::move(valid), std::move(test)} {}

std::shared_ptr<const Dataset> TableSplits::made(task::Split split) const {
  auto& table = tables_[std::size_t(split)];
  if (!table) table = std::make_shared<const Dataset>(make_[std::size_t(split)]());
  return table;
}

std::unique_ptr<task::Stream> TableSplits::stream(task::Split split,
                                                  const task::StreamOptions& options) const {
  return std::make_unique<TableStream>(made(split), columns_, options);
}

}  // namespace keel::data
