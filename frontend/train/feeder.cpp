#include "frontend/train/feeder.h"

namespace keel::train {

Feeder::Feeder(const std::vector<task::InputSpec>& inputs, const data::Dataset& dataset,
               std::int64_t batch) {
  for (const task::InputSpec& spec : inputs) {
    const Tensor& source = dataset.column(spec.name);
    const std::int64_t own = source.elements() / std::max<std::int64_t>(dataset.rows(), 1);
    const bool converts = source.dtype() == DType::kU8 && spec.dtype == DType::kF32;
    check(own == spec.row.elements() && (converts || source.dtype() == spec.dtype),
          ErrorKind::kUsage, "input {}: expected rows of {}, got {}", spec.name,
          TensorType{spec.dtype, spec.row}.text(), source.type().text());
    std::vector<std::int64_t> sizes{batch};
    sizes.insert(sizes.end(), spec.row.sizes().begin(), spec.row.sizes().end());
    columns_.push_back({spec, &source, Tensor(spec.dtype, Shape(sizes))});
  }
}

void Feeder::feed(Program& program, std::span<const std::int64_t> rows) {
  for (Column& column : columns_) {
    if (column.source->dtype() == column.spec.dtype) {
      data::gather(*column.source, rows,
                   {column.staging.data(), std::size_t(column.staging.bytes())});
    } else {
      data::gather(*column.source, rows, column.spec.affine, column.staging.as<float>());
    }
    program.feed(column.spec.name, column.staging);
  }
}

}  // namespace keel::train
