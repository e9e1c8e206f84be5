#include "frontend/data/data_loader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "frontend/data/read_ahead.h"
#include "frontend/data/shard_cut.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

template <class T>
void fill(Tensor& value, double padding) {
  std::ranges::fill(value.as<T>(), static_cast<T>(padding));
}

void fill(Tensor& value, const Input& input) {
  switch (value.dtype()) {
    case DType::kF32:
      return fill<float>(value, input.padding);
    case DType::kI32:
      return fill<std::int32_t>(value, input.padding);
    case DType::kU8:
      return fill<std::uint8_t>(value, input.padding);
    default:
      fail(ErrorKind::kUsage, "input {}: expected f32, i32 or u8, got {}", input.name,
           name_of(value.dtype()));
  }
}

}  // namespace

void clear_batch(Batch& batch, const Sizes& sizes, const std::vector<Input>& inputs) {
  if (batch.sizes != sizes) {
    batch.sizes = sizes;
    batch.values.clear();
    for (const Input& input : inputs) batch.values.emplace_back(input.type);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) fill(batch.values[i], inputs[i]);
  batch.rows.assign(std::size_t(sizes.at(0)), -1);
  batch.items = 0;
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> rows, const StreamOptions& options)
    : rows_(std::move(rows)), options_(options), plan_(rows_->plan(options)) {}

double DataLoader::items(std::uint32_t epoch, std::int64_t step) {
  const ShardPlace place = shard_place(options_.shard_range, plan_->steps(epoch), step);
  const auto rows =
      shard_rows(plan_->rows_at(epoch, place.batch), place.shard, options_.shard_range);
  double items = 0;
  for (const std::int64_t row : rows) items += rows_->items(row);
  return items;
}

std::vector<Sizes> DataLoader::shapes() const {
  std::vector<Sizes> shapes = plan_->shapes();
  for (Sizes& sizes : shapes) sizes[0] = shard_places(sizes[0], options_.shard_range);
  return shapes;
}

const Batch& DataLoader::at(std::uint32_t epoch, std::int64_t step) {
  const ShardRange& shard_range = options_.shard_range;
  if (!shard_range.is_whole() || shard_range.accumulate > 1) return shard_at(epoch, step);
  plan_->at(epoch, step, planned_);
  return make(planned_, epoch);
}

// A shard of a batch without padding has none either, for a network may take padding for rows where
// its training never has any.
const Batch& DataLoader::shard_at(std::uint32_t epoch, std::int64_t step) {
  const ShardRange& shard_range = options_.shard_range;
  const ShardPlace place = shard_place(shard_range, plan_->steps(epoch), step);
  std::int64_t first_row = 0;
  for (std::int64_t batch = place.first_batch; batch < place.batch; ++batch) {
    first_row += plan_->at(epoch, batch).capacity();
  }
  plan_->at(epoch, place.batch, planned_);
  const std::span<const std::int64_t> whole = planned_.rows;
  planned_.rows = shard_rows(whole, place.shard, shard_range);
  const bool is_full = std::ssize(whole) == planned_.capacity();
  planned_.sizes[0] =
      is_full ? std::ssize(planned_.rows) : shard_places(planned_.capacity(), shard_range);
  if (planned_.rows.empty()) {
    batch_ = {};
    batch_.sizes = {0};
  } else {
    make(planned_, epoch);
  }
  batch_.first_row = first_row + (planned_.rows.data() - whole.data());
  return batch_;
}

const Batch& DataLoader::pick(std::span<const std::int64_t> rows) {
  return make(plan_->pick(rows), 0);
}

std::vector<Skipped> DataLoader::skipped() const {
  std::vector<Skipped> left = rows_->skipped();
  if (const std::int64_t rest = plan_->skipped(); rest > 0) {
    left.push_back(
        {rest, fmt::format("incomplete batch of {}; different rows each epoch", options_.batch)});
  }
  return left;
}

const Batch& DataLoader::make(const PlannedBatch& planned, std::uint32_t epoch) {
  if (batch_.sizes != planned.sizes) inputs_ = rows_->inputs(planned.sizes);
  rows_->clear(batch_, planned.sizes, inputs_);
  // An evaluation is the same in every epoch.
  RowVisit visit{.epoch = options_.shuffle ? epoch : 0, .seed = options_.shuffle};
  for (; visit.place < std::ssize(planned.rows); ++visit.place) {
    visit.row = planned.rows[std::size_t(visit.place)];
    rows_->put(batch_, visit);
    batch_.rows[std::size_t(visit.place)] = visit.row;
    batch_.items += rows_->items(visit.row);
  }
  return batch_;
}

std::unique_ptr<Stream> stream_of_rows(std::shared_ptr<const Dataset> rows,
                                       const StreamOptions& options) {
  auto stream = std::make_unique<DataLoader>(std::move(rows), options);
  if (!options.shuffle) return stream;
  return std::make_unique<ReadAhead>(std::move(stream));
}

std::string_view name_of(Split split) {
  constexpr std::array<std::string_view, 3> kNames = {"train", "valid", "test"};
  return kNames[std::size_t(split)];
}

const std::shared_ptr<const Dataset>& DatasetSplits::rows(Split split) const {
  std::shared_ptr<const Dataset>& rows = rows_[std::size_t(split)];
  if (!rows) rows = make_(split);
  return rows;
}

}  // namespace keel::data
