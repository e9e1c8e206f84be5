#include "frontend/data/pair_batches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "frontend/data/permutation.h"
#include "frontend/data/token_batches.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

constexpr std::uint32_t kPairOrder = stream_of("data.order");
constexpr std::uint32_t kPairBatchOrder = stream_of("data.batches");
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

// The most rows of `n` that are a multiple, or all of them if they are fewer than that.
std::int64_t whole_rows(std::int64_t n, std::int64_t multiple) {
  return n < multiple ? n : n / multiple * multiple;
}

}  // namespace

PairBatches::PairBatches(std::vector<PairLength> lengths, const PairBatchOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  const auto expect = [](std::string_view name, std::int64_t value) {
    check(value >= 1 && value < kMostTokens, ErrorKind::kUsage,
          "[pair_batches] {}: expected 1 to 2^31 - 1, got {}", name, value);
  };
  expect("max_tokens", options_.max_tokens);
  expect("multiple", options_.multiple);
  expect("row_multiple", options_.row_multiple);
  expect("rows", rows());
  for (const PairLength& length : lengths_) {
    expect("source length", length.source);
    expect("target length", length.target);
  }
  cut();
}

std::int64_t PairBatches::capacity(const PairLength& length) const {
  const std::int64_t fit = std::max<std::int64_t>(1, options_.max_tokens / length.longer());
  return whole_rows(fit, options_.row_multiple);
}

PairLength PairBatches::bucket_over(std::span<const std::int64_t> rows) const {
  PairLength longest;
  for (std::int64_t row : rows) {
    longest.source = std::max(longest.source, length_of(row).source);
    longest.target = std::max(longest.target, length_of(row).target);
  }
  return {bucket_of(longest.source, options_.multiple),
          bucket_of(longest.target, options_.multiple)};
}

std::vector<std::int64_t> PairBatches::order_of(std::uint32_t epoch) const {
  std::vector<std::int64_t> order(lengths_.size());
  std::iota(order.begin(), order.end(), 0);
  if (!options_.sorted) shuffle(order, Philox(options_.seed, kPairOrder, epoch));
  std::ranges::stable_sort(order, {}, [&](std::int64_t row) {
    return std::pair(length_of(row).source, length_of(row).target);
  });
  return order;
}

// Rows of equal lengths may change places, so the cuts are the same in all epochs.
void PairBatches::cut() {
  const std::vector<std::int64_t> order = order_of(0);
  std::size_t first = 0;
  const auto pending = [&](std::size_t end) {
    return std::span(order).subspan(first, end - first);
  };
  const auto leave = [&](std::size_t count) {
    const PairLength length = bucket_over(pending(first + count));
    cuts_.push_back({first, count, std::max(capacity(length), std::int64_t(count)), length});
    first += count;
  };
  PairLength bucket{};  // of the pending rows
  for (std::size_t next = 0; next < order.size(); ++next) {
    const PairLength own = bucket_over(std::span(order).subspan(next, 1));
    while (next > first) {
      const auto rows = static_cast<std::int64_t>(next - first);
      if ((rows + 1) * std::max(bucket.longer(), own.longer()) <= options_.max_tokens) break;
      leave(static_cast<std::size_t>(whole_rows(rows, options_.row_multiple)));
      bucket = bucket_over(pending(next));
    }
    bucket = {std::max(bucket.source, own.source), std::max(bucket.target, own.target)};
  }
  leave(order.size() - first);
}

PairBatch PairBatches::at(std::uint32_t epoch, std::int64_t step) {
  check(step >= 0 && step < steps(), ErrorKind::kUsage,
        "[pair_batches] step: expected 0 to {}, got {}", steps() - 1, step);
  const Plan& plan = this->plan(epoch);
  const auto place = static_cast<std::size_t>(plan.batches[static_cast<std::size_t>(step)]);
  const Cut& cut = cuts_[place];
  return {cut.capacity, cut.length, std::span(plan.order).subspan(cut.first, cut.count)};
}

std::vector<PairBatches::Shape> PairBatches::shapes() const {
  std::vector<Shape> shapes;
  for (const Cut& cut : cuts_) shapes.push_back({cut.capacity, cut.length});
  std::ranges::sort(shapes, std::greater(), [](const Shape& shape) {
    const PairLength& length = shape.length;
    return std::tuple(shape.capacity * (length.source + length.target), length.longer(),
                      length.source);
  });
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

double PairBatches::padding() const {
  std::int64_t positions = 0, tokens = 0;
  for (const Cut& cut : cuts_) {
    positions += cut.capacity * (cut.length.source + cut.length.target);
  }
  for (const PairLength& length : lengths_) tokens += length.source + length.target;
  return 1 - static_cast<double>(tokens) / static_cast<double>(positions);
}

// Two plans are kept, for a stream that is read ahead is asked for an epoch and the next by turns.
const PairBatches::Plan& PairBatches::plan(std::uint32_t epoch) {
  if (options_.sorted) epoch = 0;  // every epoch is the same
  std::optional<Plan>& kept = plans_[epoch % 2];
  if (!kept || kept->epoch != epoch) kept = make_plan(epoch);
  return *kept;
}

PairBatches::Plan PairBatches::make_plan(std::uint32_t epoch) const {
  Plan plan{.epoch = epoch, .order = order_of(epoch), .batches = {}};
  plan.batches.resize(cuts_.size());
  std::iota(plan.batches.begin(), plan.batches.end(), 0);
  if (!options_.sorted) shuffle(plan.batches, Philox(options_.seed, kPairBatchOrder, epoch));
  return plan;
}

}  // namespace keel::data
