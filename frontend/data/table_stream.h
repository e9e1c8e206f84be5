// Data sets whose rows all have one shape, as the splits and streams of a task.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/data/batcher.h"
#include "frontend/data/dataset.h"
#include "frontend/task/batch.h"

namespace keel::data {

// How a column of a data set becomes an input (rows, row shape) of `dtype`.
struct TableColumn {
  std::string name;
  DType dtype = DType::kF32;
  Shape row = {};
  Affine affine = {};  // applied to u8 columns that become f32
};

// The inputs that columns make of a batch of sizes {rows}.
std::vector<task::Input> inputs_of(const std::vector<TableColumn>& columns,
                                   const task::Sizes& sizes);

// Batches of so many rows. A shuffled stream leaves out the rows behind the last whole batch, other
// ones every epoch; a stream in order ends with a smaller batch.
class TableStream : public task::Stream {
 public:
  // Throws Error{kUsage} when a column does not fit, or a shuffled stream would have no batch.
  TableStream(std::shared_ptr<const Dataset> rows, std::vector<TableColumn> columns,
              const task::StreamOptions& options);

  const std::string& source() const override { return dataset_->source(); }
  std::int64_t rows() const override { return dataset_->rows(); }
  std::int64_t steps(std::uint32_t) override { return batcher_.steps(); }
  double items(std::uint32_t, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<TableColumn> columns_;
  std::vector<const Tensor*> sources_;  // of each column
  task::StreamOptions options_;
  Batcher batcher_;
  task::Batch batch_;
};

// Three tables, each made when a stream of it is first asked for.
class TableSplits : public task::Splits {
 public:
  using Make = std::function<Dataset()>;
  TableSplits(std::vector<TableColumn> columns, Make train, Make valid, Make test);

  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override;
  const Dataset& table(task::Split split) const { return *made(split); }

 private:
  std::shared_ptr<const Dataset> made(task::Split split) const;

  std::vector<TableColumn> columns_;
  Make make_[3];
  mutable std::shared_ptr<const Dataset> tables_[3];
};

}  // namespace keel::data
