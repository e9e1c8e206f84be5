#include "frontend/data/fixed_batches.h"

#include <algorithm>
#include <numeric>

#include "frontend/data/permutation.h"
#include "src/core/error.h"

namespace keel::data {
namespace {

constexpr std::uint32_t kOrderStream = stream_of("data.order");

}  // namespace

FixedBatches::FixedBatches(std::int64_t rows, const StreamOptions& options)
    : BatchSampler(rows, options.shuffle.has_value()), options_(options) {
  check(options.batch > 0, ErrorKind::kUsage, "[batches] batch: expected 1 or more, got {}",
        options.batch);
  check(rows < std::int64_t{1} << 32, ErrorKind::kUsage,
        "[batches] rows: expected at most 2^32 - 1, got {}", rows);
  check(!options.shuffle || options.batch <= rows, ErrorKind::kUsage,
        "[batches] train.batch: expected at most the {} rows, got {}", rows, options.batch);
  const std::int64_t whole = rows / options.batch, rest = rows % options.batch;
  steps_ = options.shuffle || (rest == 0 && rows > 0) ? whole : whole + 1;
}

std::vector<Sizes> FixedBatches::shapes() const {
  const std::int64_t whole = rows() / options_.batch;
  std::vector<Sizes> shapes;
  if (whole > 0) shapes.push_back({options_.batch});
  if (steps_ > whole) shapes.push_back({capacity(rows() % options_.batch, {})});
  return shapes;
}

// The permutation starts from ascending rows, so that no epoch depends on the one before.
void FixedBatches::plan(std::uint32_t epoch, Epoch& planned) const {
  planned.cuts.clear();
  planned.order.resize(std::size_t(rows()));
  std::iota(planned.order.begin(), planned.order.end(), 0);
  if (options_.shuffle) shuffle(planned.order, Philox(*options_.shuffle, kOrderStream, epoch));
  for (std::int64_t step = 0; step < steps_; ++step) {
    const std::int64_t first = step * options_.batch;
    planned.cuts.push_back(
        {std::size_t(first), std::size_t(std::min(options_.batch, rows() - first))});
  }
}

}  // namespace keel::data
