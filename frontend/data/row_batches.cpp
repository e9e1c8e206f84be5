#include "frontend/data/row_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "frontend/data/permutation.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

constexpr std::uint32_t kRowOrder = stream_of("data.order");
constexpr std::uint32_t kRowBatchOrder = stream_of("data.batches");

}  // namespace

RowBatches::RowBatches(std::int64_t rows, RowLength length, const RowBatchOptions& options)
    : rows_(rows), length_(std::move(length)), options_(options) {
  check(rows >= 1, ErrorKind::kUsage, "[row_batches] rows: expected 1 or more, got {}", rows);
  check(options.batch >= 1, ErrorKind::kUsage, "[row_batches] batch: expected 1 or more, got {}",
        options.batch);
  check(!options.shuffle || options.batch <= rows, ErrorKind::kUsage,
        "[row_batches] batch: expected at most {} rows, for there are no more and a batch has to "
        "be whole, got {}",
        rows, options.batch);
  const std::int64_t together = options.shuffle ? rows - left_out() : group();
  for (std::int64_t first = 0; first < rows - left_out(); first += together) {
    cut(first, std::min(first + together, rows - left_out()));
  }
}

std::int64_t RowBatches::capacity() const {
  return options_.shuffle ? options_.batch : std::min({options_.batch, group(), rows_});
}

void RowBatches::cut(std::int64_t first, std::int64_t end) {
  for (; first < end; first += options_.batch) {
    cuts_.push_back({std::size_t(first), std::size_t(std::min(options_.batch, end - first))});
  }
}

// Two plans are kept, for a stream that is read ahead is asked for an epoch and the next by turns.
const RowBatches::Plan& RowBatches::plan(std::uint32_t epoch) {
  if (!options_.shuffle) epoch = 0;  // every epoch is the same
  std::optional<Plan>& kept = plans_[epoch % 2];
  if (!kept || kept->epoch != epoch) kept = make_plan(epoch);
  return *kept;
}

RowBatches::Plan RowBatches::make_plan(std::uint32_t epoch) const {
  Plan plan{epoch, std::vector<std::int64_t>(std::size_t(rows_)), {}};
  std::iota(plan.order.begin(), plan.order.end(), 0);
  std::int64_t together = group();
  if (options_.shuffle) {
    shuffle(plan.order, Philox(*options_.shuffle, kRowOrder, epoch));
    plan.order.resize(std::size_t(rows_ - left_out()));
    plan.batches = permutation(steps(), Philox(*options_.shuffle, kRowBatchOrder, epoch));
    together = rows_;
  }
  const std::span<std::int64_t> order(plan.order);
  for (std::size_t first = 0; first < order.size(); first += std::size_t(together)) {
    const std::size_t count = std::min(std::size_t(together), order.size() - first);
    std::ranges::stable_sort(order.subspan(first, count), {},
                             [&](std::int64_t row) { return length_(epoch, row); });
  }
  return plan;
}

std::span<const std::int64_t> RowBatches::at(std::uint32_t epoch, std::int64_t step) {
  check(step >= 0 && step < steps(), ErrorKind::kUsage,
        "[row_batches] step: expected 0 to {}, got {}", steps() - 1, step);
  const Plan& plan = this->plan(epoch);
  const std::int64_t batch = options_.shuffle ? plan.batches[std::size_t(step)] : step;
  const Cut& cut = cuts_[std::size_t(batch)];
  return std::span(plan.order).subspan(cut.first, cut.count);
}

}  // namespace keel::data
