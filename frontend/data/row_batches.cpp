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

RowBatches::RowBatches(std::int64_t rows, RowLengths lengths, const RowBatchOptions& options)
    : BatchSampler(rows, options.shuffle.has_value()),
      lengths_(std::move(lengths)),
      options_(options) {
  check(rows >= 1, ErrorKind::kUsage, "[batches] rows: expected 1 or more, got {}", rows);
  check(options.batch >= 1, ErrorKind::kUsage, "[batches] batch: expected 1 or more, got {}",
        options.batch);
  check(!options.shuffle || options.batch <= rows, ErrorKind::kUsage,
        "[batches] train.batch: expected at most the {} rows, got {}", rows, options.batch);
  const std::int64_t together = options.shuffle ? rows - skipped() : group();
  for (std::int64_t first = 0; first < rows - skipped(); first += together) {
    cut(first, std::min(first + together, rows - skipped()));
  }
}

std::int64_t RowBatches::capacity() const {
  return options_.shuffle ? options_.batch : std::min({options_.batch, group(), rows()});
}

std::vector<Sizes> RowBatches::shapes() const {
  std::vector<Sizes> shapes{{capacity()}};
  for (const std::vector<std::int64_t>& lengths : lengths_.all) {
    std::vector<Sizes> longer;
    for (const Sizes& shape : shapes) {
      for (const std::int64_t length : lengths) {
        longer.push_back(shape);
        longer.back().push_back(length);
      }
    }
    shapes = std::move(longer);
  }
  return shapes;
}

void RowBatches::cut(std::int64_t first, std::int64_t end) {
  for (; first < end; first += options_.batch) {
    cuts_.push_back({std::size_t(first), std::size_t(std::min(options_.batch, end - first))});
  }
}

void RowBatches::plan(std::uint32_t epoch, Epoch& planned) const {
  planned.order.resize(std::size_t(rows()));
  planned.cuts = cuts_;
  std::iota(planned.order.begin(), planned.order.end(), 0);
  std::int64_t together = group();
  if (options_.shuffle) {
    shuffle(planned.order, Philox(*options_.shuffle, kRowOrder, epoch));
    planned.order.resize(std::size_t(rows() - skipped()));
    shuffle(planned.cuts, Philox(*options_.shuffle, kRowBatchOrder, epoch));
    together = rows();
  }
  const std::span<std::int64_t> order(planned.order);
  for (std::size_t first = 0; first < order.size(); first += std::size_t(together)) {
    const std::size_t count = std::min(std::size_t(together), order.size() - first);
    std::ranges::stable_sort(order.subspan(first, count), {},
                             [&](std::int64_t row) { return lengths_.order(epoch, row); });
  }
}

Sizes RowBatches::lengths_of(std::span<const std::int64_t> rows, std::uint32_t epoch) const {
  Sizes longest;
  if (!lengths_.padded) return longest;
  for (const std::int64_t row : rows) {
    const Sizes own = lengths_.padded(epoch, row);
    longest.resize(own.size(), 0);
    std::ranges::transform(longest, own, longest.begin(),
                           [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return longest;
}

}  // namespace keel::data
