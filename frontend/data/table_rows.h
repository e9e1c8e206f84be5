// Data sets with rows of one shape, as the splits of a task.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/data/dataset.h"
#include "frontend/data/gather.h"
#include "frontend/data/planned_stream.h"

namespace keel::data {

// The way in which a column of a data set becomes an input (rows, row shape) of `dtype`.
struct TableColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape row = {};
  Affine affine = {};  // applied to u8 columns that become f32
};

// The inputs that the columns give for a batch of sizes {rows}.
std::vector<task::Input> inputs_of(const std::vector<TableColumn>& columns,
                                   const task::Sizes& sizes);

// The rows of a data set, in FixedBatches.
class TableRows final : public RowSet {
 public:
  // Throws Error{kUsage} when a column does not fit.
  TableRows(Dataset dataset, std::vector<TableColumn> columns);

  const Dataset& dataset() const { return dataset_; }
  std::unique_ptr<BatchPlan> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return inputs_of(columns_, sizes);
  }
  void put(task::Batch& batch, const RowVisit& visit) const override;

 private:
  Dataset dataset_;
  std::vector<TableColumn> columns_;
  std::vector<const Tensor*> sources_;  // of each column
};

// Three tables, each made when a stream of it is first asked for.
class TableSplits : public RowSplits {
 public:
  using Make = std::function<Dataset()>;
  TableSplits(std::vector<TableColumn> columns, Make train, Make valid, Make test);

  const Dataset& table(task::Split split) const {
    return static_cast<const TableRows&>(*rows(split)).dataset();
  }
};

}  // namespace keel::data
