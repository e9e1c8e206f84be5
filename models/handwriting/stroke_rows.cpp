#include "models/handwriting/stroke_rows.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/data/permutation.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::uint32_t kOrder = stream_of("handwriting.order");
constexpr std::uint32_t kBatches = stream_of("handwriting.batches");
// Rows of a batch in evaluation, where nothing limits them but memory.
constexpr std::int64_t kMostRows = 32;

}  // namespace

std::vector<task::Input> stroke_inputs(const task::Sizes& sizes, std::int64_t state) {
  const std::int64_t rows = sizes.at(0), points = sizes.at(1), symbols = sizes.at(2);
  return {{"points", {DType::kF32, {points, rows, 3}}},
          {"targets", {DType::kF32, {points, rows, 3}}},
          {"mask", {DType::kU8, {points, rows}}},
          {"text", {DType::kI32, {rows, symbols}}, -1},
          {"state", {DType::kF32, {rows, state}}}};
}

StrokeBatches::StrokeBatches(std::vector<std::int64_t> points, std::int64_t symbols,
                             const task::StreamOptions& options)
    : BatchSampler(std::ssize(points), options.shuffle.has_value()),
      points_(std::move(points)),
      symbols_(symbols),
      options_(options) {
  check(options_.batch >= 1, ErrorKind::kUsage, "[handwriting] batch: expected 1 or more, got {}",
        options_.batch);
  for (std::int64_t row = 0; row < rows(); ++row) {
    buckets_[points_[std::size_t(row)]].push_back(row);
  }
  for (const auto& [points_of, members] : buckets_) {
    const std::int64_t places = capacity(0, {points_of, symbols_});
    steps_ += (std::ssize(members) + places - 1) / places;
  }
}

task::Sizes StrokeBatches::lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) longest = std::max(longest, points_[std::size_t(row)]);
  return {longest, symbols_};
}

std::int64_t StrokeBatches::capacity(std::int64_t, const task::Sizes& lengths) const {
  return std::min(options_.batch, std::ssize(buckets_.at(lengths[0])));
}

std::vector<task::Sizes> StrokeBatches::shapes() const {
  std::vector<task::Sizes> shapes;
  for (const auto& [points, members] : buckets_) {
    const task::Sizes lengths{points, symbols_};
    shapes.push_back(data::with_lengths(capacity(0, lengths), lengths));
  }
  std::ranges::stable_sort(shapes, std::ranges::greater(),
                           [](const task::Sizes& s) { return s[0] * s[1]; });
  return shapes;
}

void StrokeBatches::plan(std::uint32_t epoch, Epoch& planned) const {
  planned.order.clear();
  planned.cuts.clear();
  for (const auto& [points, members] : buckets_) {
    const auto begin = std::ptrdiff_t(planned.order.size());
    planned.order.insert(planned.order.end(), members.begin(), members.end());
    // Each bucket has an order of its own, so that lines of one do not decide another's.
    if (options_.shuffle) {
      data::shuffle(std::span(planned.order).subspan(std::size_t(begin)),
                    Philox(*options_.shuffle, kOrder + std::uint32_t(points), epoch));
    }
    const auto places = std::size_t(capacity(0, {points, symbols_}));
    for (std::size_t first = std::size_t(begin); first < planned.order.size(); first += places) {
      planned.cuts.push_back({first, std::min(places, planned.order.size() - first)});
    }
  }
  if (options_.shuffle) data::shuffle(planned.cuts, Philox(*options_.shuffle, kBatches, epoch));
}

StrokeRows::StrokeRows(data::SplitNotes notes, std::vector<StrokeRow> rows,
                       const StrokeOptions& options)
    : Dataset(std::move(notes)), rows_(std::move(rows)), options_(options) {
  check(options_.longest >= 1 && options_.multiple >= 1, ErrorKind::kUsage,
        "[handwriting] batches: expected 1 or more of everything, got {} points, multiples of {}",
        options_.longest, options_.multiple);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    check(rows_[row].count() >= 2, ErrorKind::kUsage,
          "[handwriting] {}: row {}: expected 2 points or more, got {}", source(), row,
          rows_[row].count());
  }
}

std::int64_t StrokeRows::predicted(std::int64_t row) const {
  return std::min(rows_[std::size_t(row)].count() - 1, options_.longest);
}

std::unique_ptr<data::BatchSampler> StrokeRows::plan(const task::StreamOptions& options) const {
  check(!rows_.empty(), ErrorKind::kUsage, "[handwriting] {}: expected lines, got none", source());
  const std::int64_t multiple = options_.multiple;
  std::vector<std::int64_t> points;
  std::int64_t symbols = 1;
  for (std::int64_t row = 0; row < std::ssize(rows_); ++row) {
    const std::int64_t padded = (predicted(row) + multiple - 1) / multiple * multiple;
    points.push_back(std::min(padded, options_.longest));
    symbols = std::max(symbols, std::int64_t(std::ssize(rows_[std::size_t(row)].text)));
  }
  task::StreamOptions own = options;
  if (!options.shuffle) own.batch = std::min(options.batch, kMostRows);
  return std::make_unique<StrokeBatches>(std::move(points), symbols, own);
}

void StrokeRows::put(task::Batch& batch, const data::RowVisit& visit) const {
  const StrokeRow& line = rows_[std::size_t(visit.row)];
  const auto rows = std::size_t(batch.sizes[0]), place = std::size_t(visit.place);
  float* points = batch.values[StrokeValue::kPoints].as<float>().data();
  float* targets = batch.values[StrokeValue::kTargets].as<float>().data();
  std::uint8_t* mask = batch.values[StrokeValue::kMask].as<std::uint8_t>().data();
  for (std::size_t t = 0; t < std::size_t(predicted(visit.row)); ++t) {
    const std::size_t at = t * rows + place;
    std::copy_n(line.points.data() + 3 * t, 3, points + 3 * at);
    std::copy_n(line.points.data() + 3 * (t + 1), 3, targets + 3 * at);
    mask[at] = 1;
  }
  std::ranges::copy(line.text, batch.values[StrokeValue::kText].as<std::int32_t>().begin() +
                                   std::ptrdiff_t(place * std::size_t(batch.sizes[2])));
}

}  // namespace keel::models
