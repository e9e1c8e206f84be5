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
    : BatchSampler(std::ssize(lengths), !options.sorted),
      lengths_(std::move(lengths)),
      options_(options) {
  const auto expect = [](std::string_view name, std::int64_t value) {
    check(value >= 1 && value < kMaxLength, ErrorKind::kUsage,
          "[batches] {}: expected 1 to 2^31 - 1, got {}", name, value);
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

// One row at the least: rows that are picked may be none.
Sizes TokenBatches::lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const {
  std::int64_t longest = 1;
  for (const std::int64_t row : rows) longest = std::max(longest, length_of(row));
  return {bucket_of(longest, options_.multiple)};
}

std::vector<Sizes> TokenBatches::shapes() const {
  std::set<std::int64_t> buckets;
  for (std::int64_t row = 0; row < rows(); ++row) buckets.insert(bucket(row));
  std::vector<Sizes> shapes;
  for (std::int64_t length : buckets) shapes.push_back({capacity(length), length});
  std::ranges::sort(shapes, std::greater(),
                    [](const Sizes& shape) { return std::pair(shape[0] * shape[1], shape[1]); });
  return shapes;
}

double TokenBatches::padding(std::uint32_t epoch) {
  std::int64_t positions = 0;
  for (std::int64_t step = 0; step < steps(epoch); ++step) {
    const Sizes sizes = at(epoch, step).sizes;
    positions += sizes[0] * sizes[1];
  }
  const std::int64_t tokens = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
  return 1 - static_cast<double>(tokens) / static_cast<double>(positions);
}

void TokenBatches::plan(std::uint32_t epoch, Epoch& planned) const {
  planned.cuts.clear();
  if (options_.sorted) {
    planned.order.resize(lengths_.size());
    std::iota(planned.order.begin(), planned.order.end(), 0);
    cut_pool(planned, 0, planned.order.size());
    return;
  }
  planned.order = permutation(rows(), Philox(options_.seed, kPoolOrder, epoch));
  for (std::size_t first = 0; first < planned.order.size();) {
    const std::size_t end = pool_end(planned, first);
    cut_pool(planned, first, end);
    first = end;
  }
  shuffle(planned.cuts, Philox(options_.seed, kBatchStream, epoch));
}

// Where the pool that begins at `first` ends; it has at least one row.
std::size_t TokenBatches::pool_end(const Epoch& planned, std::size_t first) const {
  std::int64_t room = options_.pool * options_.max_tokens - bucket(planned.order[first]);
  std::size_t end = first + 1;
  for (; end < planned.order.size(); ++end) {
    room -= bucket(planned.order[end]);
    if (room < 0) break;
  }
  return end;
}

// Sorts a pool and cuts it into batches. Because lengths ascend, the newest row is the longest.
void TokenBatches::cut_pool(Epoch& planned, std::size_t first, std::size_t end) const {
  const std::span<std::int64_t> pool = std::span(planned.order).subspan(first, end - first);
  std::ranges::stable_sort(pool, {}, [&](std::int64_t row) { return length_of(row); });
  Cut cut{.first = first};
  for (; first < end; ++first) {
    const std::int64_t length = bucket(planned.order[first]);
    if (cut.count > 0 && static_cast<std::int64_t>(cut.count) >= capacity(length)) {
      planned.cuts.push_back(cut);
      cut = {.first = first};
    }
    ++cut.count;
  }
  planned.cuts.push_back(cut);
}

}  // namespace keel::data
