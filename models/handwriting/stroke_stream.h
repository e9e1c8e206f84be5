// Lines of handwriting as batches of a few fixed shapes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/batch.h"

namespace keel::models {

// A line as the network reads it.
struct StrokeRow {
  std::vector<float> points;       // (n, 3): normalized dx, dy, and 1 where the pen is lifted
  std::vector<std::int32_t> text;  // of an alphabet

  std::int64_t count() const { return std::int64_t(points.size() / 3); }
};

struct StrokeStreamOptions {
  std::int64_t batch = 8;       // rows
  std::int64_t longest = 500;   // points that are predicted of a line; the rest is cut off
  std::int64_t multiple = 100;  // numbers of points are rounded up to a multiple of it
  std::int64_t state = 0;       // numbers that the network knows of a line before its first point
  std::optional<std::uint64_t> shuffle = std::nullopt;
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

// A bucket holds the lines whose points come to one multiple. An epoch is a pure function of (rows,
// options, epoch): each bucket's lines, in an order drawn for the epoch, are cut into batches, the
// last of which may have rows of padding, and the batches of all buckets are put in an order drawn
// for the epoch. Without `shuffle` nothing is drawn. Every line comes once.
class StrokeStream final : public task::Stream {
 public:
  // Throws Error{kUsage} for options or a row that has no point to predict, and for no rows.
  StrokeStream(std::string source, std::vector<StrokeRow> rows, const StrokeStreamOptions& options,
               std::vector<task::LeftOut> left_out = {});

  const std::string& source() const override { return source_; }
  std::int64_t rows() const override { return std::ssize(rows_); }
  std::int64_t steps(std::uint32_t) override { return steps_; }
  double items(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override;
  const task::Batch& pick(std::span<const std::int64_t> rows) override;
  std::vector<task::Sizes> shapes() const override;
  std::vector<task::LeftOut> left_out() const override { return left_out_; }

 private:
  struct Bucket {
    std::int64_t points = 0, capacity = 0;
    std::vector<std::int64_t> rows;
  };
  struct Cut {
    std::int64_t points = 0, capacity = 0;
    std::vector<std::int64_t> rows;
  };
  struct Plan {
    std::uint32_t epoch = 0;
    std::vector<Cut> cuts;
  };

  std::int64_t predicted(std::int64_t row) const;
  std::int64_t padded(std::int64_t points) const;
  const Cut& cut(std::uint32_t epoch, std::int64_t step);
  Plan make_plan(std::uint32_t epoch) const;
  const task::Batch& make(const Cut& cut);
  void fill(std::size_t place, std::int64_t row);

  std::string source_;
  std::vector<StrokeRow> rows_;
  StrokeStreamOptions options_;
  std::vector<task::LeftOut> left_out_;
  std::vector<Bucket> buckets_;  // the shortest first
  std::int64_t steps_ = 0, symbols_ = 1;
  std::array<std::optional<Plan>, 2> plans_;  // of the latest even and odd epoch
  task::Batch batch_;
};

}  // namespace keel::models
