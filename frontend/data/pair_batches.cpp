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
    : BatchSampler(std::ssize(lengths), !options.sorted),
      lengths_(std::move(lengths)),
      options_(options) {
  const auto expect = [](std::string_view name, std::int64_t value) {
    check(value >= 1 && value < kMostTokens, ErrorKind::kUsage,
          "[batches] {}: expected 1 to 2^31 - 1, got {}", name, value);
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

std::int64_t PairBatches::capacity(std::int64_t count, const Sizes& lengths) const {
  const std::int64_t longer = std::max(lengths[0], lengths[1]);
  const std::int64_t fit = std::max<std::int64_t>(1, options_.max_tokens / longer);
  return std::max(whole_rows(fit, options_.row_multiple), count);
}

PairLength PairBatches::bucket_over(std::span<const std::int64_t> rows) const {
  PairLength longest{1, 1};
  for (std::int64_t row : rows) {
    longest.source = std::max(longest.source, length_of(row).source);
    longest.target = std::max(longest.target, length_of(row).target);
  }
  return {bucket_of(longest.source, options_.multiple),
          bucket_of(longest.target, options_.multiple)};
}

Sizes PairBatches::lengths_of(std::span<const std::int64_t> rows, std::uint32_t) const {
  const PairLength bucket = bucket_over(rows);
  return {bucket.source, bucket.target};
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
    const Sizes lengths = lengths_of(pending(first + count), 0);
    cuts_.push_back({first, count});
    shapes_.push_back(with_lengths(capacity(std::int64_t(count), lengths), lengths));
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

std::vector<Sizes> PairBatches::shapes() const {
  std::vector<Sizes> shapes = shapes_;
  std::ranges::sort(shapes, std::greater(), [](const Sizes& s) {
    return std::tuple(s[0] * (s[1] + s[2]), std::max(s[1], s[2]), s[1]);
  });
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

double PairBatches::padding() const {
  std::int64_t positions = 0, tokens = 0;
  for (const Sizes& s : shapes_) positions += s[0] * (s[1] + s[2]);
  for (const PairLength& length : lengths_) tokens += length.source + length.target;
  return 1 - static_cast<double>(tokens) / static_cast<double>(positions);
}

void PairBatches::plan(std::uint32_t epoch, Epoch& planned) const {
  planned.order = order_of(epoch);
  planned.cuts = cuts_;
  if (!options_.sorted) shuffle(planned.cuts, Philox(options_.seed, kPairBatchOrder, epoch));
}

}  // namespace keel::data
