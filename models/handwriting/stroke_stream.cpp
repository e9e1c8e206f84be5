#include "models/handwriting/stroke_stream.h"

#include <algorithm>
#include <map>
#include <utility>

#include "frontend/data/permutation.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::uint32_t kOrder = stream_of("handwriting.order");
constexpr std::uint32_t kBatches = stream_of("handwriting.batches");

}  // namespace

std::vector<task::Input> stroke_inputs(const task::Sizes& sizes, std::int64_t state) {
  const std::int64_t rows = sizes.at(0), points = sizes.at(1), symbols = sizes.at(2);
  return {{"points", {DType::kF32, {points, rows, 3}}},
          {"targets", {DType::kF32, {points, rows, 3}}},
          {"mask", {DType::kU8, {points, rows}}},
          {"text", {DType::kI32, {rows, symbols}}},
          {"state", {DType::kF32, {rows, state}}}};
}

StrokeStream::StrokeStream(std::string source, std::vector<StrokeRow> rows,
                           const StrokeStreamOptions& options, std::vector<task::LeftOut> left_out)
    : source_(std::move(source)),
      rows_(std::move(rows)),
      options_(options),
      left_out_(std::move(left_out)) {
  check(
      options_.batch >= 1 && options_.longest >= 1 && options_.multiple >= 1, ErrorKind::kUsage,
      "[handwriting] batches: expected 1 or more of everything, got {} rows, {} points, multiples "
      "of {}",
      options_.batch, options_.longest, options_.multiple);
  check(!rows_.empty(), ErrorKind::kUsage, "[handwriting] {}: expected lines, got none", source_);
  std::map<std::int64_t, std::vector<std::int64_t>> by_points;
  for (std::int64_t row = 0; row < this->rows(); ++row) {
    const StrokeRow& r = rows_[std::size_t(row)];
    check(r.count() >= 2, ErrorKind::kUsage,
          "[handwriting] {}: row {}: expected 2 points or more, got {}", source_, row, r.count());
    by_points[padded(predicted(row))].push_back(row);
    symbols_ = std::max(symbols_, std::int64_t(std::ssize(r.text)));
  }
  for (auto& [points, members] : by_points) {
    const std::int64_t count = std::ssize(members), capacity = std::min(options_.batch, count);
    buckets_.push_back({points, capacity, std::move(members)});
    steps_ += (count + capacity - 1) / capacity;
  }
}

std::int64_t StrokeStream::predicted(std::int64_t row) const {
  return std::min(rows_[std::size_t(row)].count() - 1, options_.longest);
}

std::int64_t StrokeStream::padded(std::int64_t points) const {
  const std::int64_t multiple = options_.multiple;
  return std::min((points + multiple - 1) / multiple * multiple, options_.longest);
}

std::vector<task::Sizes> StrokeStream::shapes() const {
  std::vector<task::Sizes> shapes;
  for (const Bucket& bucket : buckets_)
    shapes.push_back({bucket.capacity, bucket.points, symbols_});
  std::ranges::stable_sort(shapes, std::ranges::greater(),
                           [](const task::Sizes& s) { return s[0] * s[1]; });
  return shapes;
}

StrokeStream::Plan StrokeStream::make_plan(std::uint32_t epoch) const {
  Plan plan{epoch, {}};
  for (const Bucket& bucket : buckets_) {
    std::vector<std::int64_t> order = bucket.rows;
    // Each bucket has an order of its own, so that lines of one do not decide another's.
    if (options_.shuffle) {
      data::shuffle(order, Philox(*options_.shuffle, kOrder + std::uint32_t(bucket.points), epoch));
    }
    for (std::size_t first = 0; first < order.size(); first += std::size_t(bucket.capacity)) {
      const std::size_t end = std::min(first + std::size_t(bucket.capacity), order.size());
      plan.cuts.push_back(
          {bucket.points,
           bucket.capacity,
           {order.begin() + std::ptrdiff_t(first), order.begin() + std::ptrdiff_t(end)}});
    }
  }
  if (!options_.shuffle) return plan;
  const auto places =
      data::permutation(std::ssize(plan.cuts), Philox(*options_.shuffle, kBatches, epoch));
  Plan shuffled{epoch, {}};
  for (const std::int64_t place : places) {
    shuffled.cuts.push_back(std::move(plan.cuts[std::size_t(place)]));
  }
  return shuffled;
}

const StrokeStream::Cut& StrokeStream::cut(std::uint32_t epoch, std::int64_t step) {
  check(step >= 0 && step < steps_, ErrorKind::kUsage,
        "[handwriting] step: expected 0 to {}, got {}", steps_ - 1, step);
  std::optional<Plan>& plan = plans_[epoch % 2];
  if (!plan || plan->epoch != epoch) plan = make_plan(epoch);
  return plan->cuts[std::size_t(step)];
}

double StrokeStream::items(std::uint32_t epoch, std::int64_t step) {
  return double(cut(epoch, step).rows.size());
}

const task::Batch& StrokeStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(cut(epoch, step));
}

const task::Batch& StrokeStream::pick(std::span<const std::int64_t> rows) {
  Cut picked{1, std::ssize(rows), {rows.begin(), rows.end()}};
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < this->rows(), ErrorKind::kUsage,
          "[handwriting] row: expected 0 to {}, got {}", this->rows() - 1, row);
    picked.points = std::max(picked.points, padded(predicted(row)));
  }
  return make(picked);
}

const task::Batch& StrokeStream::make(const Cut& cut) {
  task::Sizes sizes{cut.capacity, cut.points, symbols_};
  if (batch_.sizes != sizes) {
    batch_.values.clear();
    for (const task::Input& input : stroke_inputs(sizes, options_.state)) {
      batch_.values.emplace_back(input.type);
    }
    batch_.sizes = std::move(sizes);
  }
  std::ranges::fill(batch_.values[StrokeValue::kPoints].as<float>(), 0.0f);
  std::ranges::fill(batch_.values[StrokeValue::kTargets].as<float>(), 0.0f);
  std::ranges::fill(batch_.values[StrokeValue::kMask].as<std::uint8_t>(), std::uint8_t{0});
  std::ranges::fill(batch_.values[StrokeValue::kText].as<std::int32_t>(), -1);
  for (std::size_t place = 0; place < cut.rows.size(); ++place) fill(place, cut.rows[place]);
  batch_.rows = cut.rows;
  batch_.rows.resize(std::size_t(cut.capacity), -1);
  batch_.items = double(cut.rows.size());
  return batch_;
}

void StrokeStream::fill(std::size_t place, std::int64_t row) {
  const StrokeRow& line = rows_[std::size_t(row)];
  const auto rows = std::size_t(batch_.sizes[0]);
  float* points = batch_.values[StrokeValue::kPoints].as<float>().data();
  float* targets = batch_.values[StrokeValue::kTargets].as<float>().data();
  std::uint8_t* mask = batch_.values[StrokeValue::kMask].as<std::uint8_t>().data();
  for (std::size_t t = 0; t < std::size_t(predicted(row)); ++t) {
    const std::size_t at = t * rows + place;
    std::copy_n(line.points.data() + 3 * t, 3, points + 3 * at);
    std::copy_n(line.points.data() + 3 * (t + 1), 3, targets + 3 * at);
    mask[at] = 1;
  }
  std::ranges::copy(line.text, batch_.values[StrokeValue::kText].as<std::int32_t>().begin() +
                                   std::ptrdiff_t(place * std::size_t(batch_.sizes[2])));
}

}  // namespace keel::models
