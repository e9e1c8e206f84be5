// Data sets with rows of one shape, as the splits of a task.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/data/gather.h"
#include "frontend/data/tensor_dataset.h"

namespace keel::data {

// The way in which a column of a data set becomes an input (rows, row shape) of `dtype`.
struct TableColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape row = {};
  Affine affine = {};  // applied to u8 columns that become f32
};

// The inputs that the columns give for a batch of sizes {rows}.
std::vector<Input> inputs_of(const std::vector<TableColumn>& columns, const Sizes& sizes);

// The rows of a data set, in FixedBatches.
class TableRows final : public Dataset {
 public:
  // Throws Error{kUsage} when a column does not fit.
  TableRows(TensorDataset dataset, std::vector<TableColumn> columns);

  const TensorDataset& dataset() const { return dataset_; }
  std::unique_ptr<BatchSampler> plan(const StreamOptions& options) const override;
  std::vector<Input> inputs(const Sizes& sizes) const override {
    return inputs_of(columns_, sizes);
  }
  void put(Batch& batch, const RowVisit& visit) const override;

 private:
  TensorDataset dataset_;
  std::vector<TableColumn> columns_;
  std::vector<const Tensor*> sources_;  // of each column
};

// Three tables, each made when a stream of it is first asked for.
class TableSplits : public DatasetSplits {
 public:
  using Make = std::function<TensorDataset()>;
  TableSplits(std::vector<TableColumn> columns, Make train, Make valid, Make test);

  const TensorDataset& table(Split split) const {
    return static_cast<const TableRows&>(*rows(split)).dataset();
  }
};

}  // namespace keel::data
