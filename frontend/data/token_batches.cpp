#include "frontend/data/token_batches.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "frontend/data/permutation.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

constexpr std::uint32_t kPoolOrder = stream_of("data.order");
constexpr std::uint32_t kBatchStream = stream_of("data.batches");
constexpr std::int64_t kFineLength = 64;  // up to here the grid has every multiple
constexpr std::int64_t kMaxLength = std::int64_t{1} << 31;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t bucket_of(std::int64_t length, std::int64_t multiple) {
  if (length <= kFineLength) return round_up(length, multiple);
  std::int64_t bucket = round_up(kFineLength, multiple);
  while (bucket < length) bucket = round_up(bucket + bucket / 4, multiple);
  return bucket;
}

TokenBatches::TokenBatches(std::vector<std::int64_t> lengths, const TokenBatchOptions& options)
    : lengths_(std::move(lengths)), options_(options) {
  const auto expect = [](std::string_view name, std::int64_t value) {
    check(value >= 1 && value < kMaxLength, ErrorKind::kUsage,
          "[token_batches] {}: expected 1 to 2^31 - 1, got {}", name, value);
  };
  expect("max_tokens", options_.max_tokens);
  expect("pool", options_.pool);
  expect("multiple", options_.multiple);
  expect("rows", rows());
  for (std::int64_t length : lengths_) expect("length", length);
}

std::int64_t TokenBatches::capacity(std::int64_t length) const {
  return std::max<std::int64_t>(1, options_.max_tokens / length);
}

TokenBatch TokenBatches::at(std::uint32_t epoch, std::int64_t step) {
  const Plan& plan = this->plan(epoch);
  check(step >= 0 && step < std::ssize(plan.cuts), ErrorKind::kUsage,
        "[token_batches] step: expected 0 to {}, got {}", plan.cuts.size() - 1, step);
  const Cut& cut = plan.cuts[static_cast<std::size_t>(step)];
  return {capacity(cut.length), cut.length, std::span(plan.order).subspan(cut.first, cut.count)};
}

std::vector<TokenBatches::Size> TokenBatches::sizes() const {
  std::set<std::int64_t> buckets;
  for (std::int64_t row = 0; row < rows(); ++row) buckets.insert(bucket(row));
  std::vector<Size> sizes;
  for (std::int64_t length : buckets) sizes.push_back({capacity(length), length});
  std::ranges::sort(sizes, std::greater(), [](const Size& size) {
    return std::pair(size.capacity * size.length, size.length);
  });
  return sizes;
}

double TokenBatches::padding(std::uint32_t epoch) {
  std::int64_t positions = 0;
  for (const Cut& cut : plan(epoch).cuts) positions += capacity(cut.length) * cut.length;
  const std::int64_t tokens = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
  return 1 - static_cast<double>(tokens) / static_cast<double>(positions);
}

// Two plans are kept, for a stream that is read ahead is asked for an epoch and the next by turns.
const TokenBatches::Plan& TokenBatches::plan(std::uint32_t epoch) {
  if (options_.sorted) epoch = 0;  // every epoch is the same
  std::optional<Plan>& kept = plans_[epoch % 2];
  if (!kept || kept->epoch != epoch) kept = make_plan(epoch);
  return *kept;
}

TokenBatches::Plan TokenBatches::make_plan(std::uint32_t epoch) const {
  Plan plan;
  plan.epoch = epoch;
  if (options_.sorted) {
    plan.order.resize(lengths_.size());
    std::iota(plan.order.begin(), plan.order.end(), 0);
    cut_pool(plan, 0, plan.order.size());
    return plan;
  }
  plan.order = permutation(rows(), Philox(options_.seed, kPoolOrder, epoch));
  for (std::size_t first = 0; first < plan.order.size();) {
    const std::size_t end = pool_end(plan, first);
    cut_pool(plan, first, end);
    first = end;
  }
  std::vector<Cut> cuts;
  for (std::int64_t i :
       permutation(std::ssize(plan.cuts), Philox(options_.seed, kBatchStream, epoch))) {
    cuts.push_back(plan.cuts[static_cast<std::size_t>(i)]);
  }
  plan.cuts = std::move(cuts);
  return plan;
}

// Where the pool that begins at `first` ends; it has at least one row.
std::size_t TokenBatches::pool_end(const Plan& plan, std::size_t first) const {
  std::int64_t room = options_.pool * options_.max_tokens - bucket(plan.order[first]);
  std::size_t end = first + 1;
  for (; end < plan.order.size(); ++end) {
    room -= bucket(plan.order[end]);
    if (room < 0) break;
  }
  return end;
}

// Sorts a pool and cuts it into batches. Because lengths ascend, the newest row is the longest.
void TokenBatches::cut_pool(Plan& plan, std::size_t first, std::size_t end) const {
  const std::span<std::int64_t> pool = std::span(plan.order).subspan(first, end - first);
  std::ranges::stable_sort(pool, {}, [&](std::int64_t row) { return length_of(row); });
  Cut cut{.first = first};
  for (; first < end; ++first) {
    const std::int64_t length = bucket(plan.order[first]);
    if (cut.count > 0 && static_cast<std::int64_t>(cut.count) >= capacity(length)) {
      plan.cuts.push_back(cut);
      cut = {.first = first};
    }
    ++cut.count;
    cut.length = length;
  }
  plan.cuts.push_back(cut);
}

}  // namespace keel::data
