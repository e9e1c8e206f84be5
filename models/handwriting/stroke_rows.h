// Lines of handwriting as batches of a few fixed shapes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "frontend/data/data_loader.h"
#include "frontend/task/batch.h"

namespace keel::models {

// A line in the form that the network reads.
struct StrokeRow {
  std::vector<float> points;       // (n, 3): normalized dx, dy, and 1 where the pen is lifted
  std::vector<std::int32_t> text;  // of an alphabet

  std::int64_t count() const { return std::int64_t(points.size() / 3); }
};

struct StrokeOptions {
  std::int64_t longest = 500;   // predicted points of a line; the rest is cut off
  std::int64_t multiple = 100;  // numbers of points are rounded up to a multiple of it
  std::int64_t state = 0;       // size of the network's state before the first point of a line
};

// The first numbers of Batch::values.
struct StrokeValue {
  enum Place : std::size_t { kPoints, kTargets, kMask, kText, kState };
};

// sizes are {rows, points, symbols}. Sequences lie time-major:
//   points   f32 (points, rows, 3)   what is read: point t of the line, from its first on
//   targets  f32 (points, rows, 3)   what is to be predicted: point t + 1
//   mask     u8 (points, rows)       1 where there is such a point
//   text     i32 (rows, symbols)     then -1; as long as the longest text of the split
//   state    f32 (rows, state)       zeros: a line begins
// items is the number of lines.
std::vector<task::Input> stroke_inputs(const task::Sizes& sizes, std::int64_t state);

// A bucket holds the lines whose points round up to one multiple. An epoch is a pure function of
// (rows, options, epoch): the lines of each bucket, in an order drawn for the epoch, are cut into
// batches, the last of which may have rows of padding, and the order of all batches is drawn, too.
// Without `shuffle` nothing is drawn. Every line occurs once.
class StrokeBatches final : public data::BatchSampler {
 public:
  // `points`: of each line, a bucket; `symbols`: of the longest text. Throws Error{kUsage} for a
  // batch below 1.
  StrokeBatches(std::vector<std::int64_t> points, std::int64_t symbols,
                const task::StreamOptions& options);

  std::int64_t steps(std::uint32_t) override { return steps_; }
  std::vector<task::Sizes> shapes() const override;

 private:
  void plan(std::uint32_t epoch, Epoch& planned) const override;
  task::Sizes lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const override;
  std::int64_t capacity(std::int64_t count, const task::Sizes& lengths) const override;

  std::vector<std::int64_t> points_;
  std::int64_t symbols_;
  task::StreamOptions options_;
  std::map<std::int64_t, std::vector<std::int64_t>> buckets_;  // lines by their points
  std::int64_t steps_ = 0;
};

class StrokeRows final : public data::Dataset {
 public:
  // Throws Error{kUsage} for options below 1 or a row that has no point to predict.
  StrokeRows(data::SplitNotes notes, std::vector<StrokeRow> rows, const StrokeOptions& options);

  std::unique_ptr<data::BatchSampler> plan(const task::StreamOptions& options) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return stroke_inputs(sizes, options_.state);
  }
  void put(task::Batch& batch, const data::RowVisit& visit) const override;

 private:
  std::int64_t predicted(std::int64_t row) const;

  std::vector<StrokeRow> rows_;
  StrokeOptions options_;
};

}  // namespace keel::models
