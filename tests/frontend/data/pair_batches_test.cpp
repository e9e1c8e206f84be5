// Batches of pairs measured in tokens: fairseq's cuts, every pair once, few shapes, and a pure
// function of the seed and the epoch.
#include "frontend/data/pair_batches.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "frontend/data/token_batches.h"
#include "src/core/rng.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;
using Rows = std::vector<std::int64_t>;

// Lengths like those of spoken sentences and their translations.
std::vector<PairLength> sentence_pairs(std::int64_t rows, std::uint64_t seed = 1) {
  const Philox philox(seed, stream_of("pairs"));
  std::vector<PairLength> lengths;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::uint64_t>(2 * row);
    const double source = std::max(2.0, 22 + 13 * philox.normal(at));
    const double target = std::max(2.0, source + 4 * philox.normal(at + 1));
    lengths.push_back({std::llround(source), std::llround(target)});
  }
  return lengths;
}

// The rule of fairseq's batch_by_size over lengths that are rounded up to buckets.
std::vector<std::size_t> counts_by_definition(std::vector<PairLength> lengths,
                                              const PairBatchOptions& options) {
  std::ranges::stable_sort(lengths, {}, [](const PairLength& length) {
    return std::pair(length.source, length.target);
  });
  std::vector<std::size_t> counts;
  std::vector<std::int64_t> batch;  // of the pairs in it, the bucket of the longer side
  const auto leave = [&] {
    const auto multiple = static_cast<std::size_t>(options.row_multiple);
    const std::size_t count =
        std::max(multiple * (batch.size() / multiple), batch.size() % multiple);
    counts.push_back(count);
    batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const PairLength& length : lengths) {
    const std::int64_t bucket = bucket_of(length.longer(), options.multiple);
    const auto full = [&] {
      const std::int64_t longest = std::max(bucket, *std::ranges::max_element(batch));
      return (std::ssize(batch) + 1) * longest > options.max_tokens;
    };
    while (!batch.empty() && full()) leave();
    batch.push_back(bucket);
  }
  counts.push_back(batch.size());
  return counts;
}

struct PairCase {
  std::string name;
  std::vector<PairLength> lengths;
  PairBatchOptions options;
};

std::vector<PairCase> pair_cases() {
  std::vector<PairLength> mixed = sentence_pairs(500);
  mixed.insert(mixed.begin() + 100, {{5000, 3}, {1, 1}, {4, 4096}, {4097, 4097}, {300, 2}, {1, 1}});
  return {
      {"sentences", sentence_pairs(875), {.max_tokens = 1024}},
      {"sorted", sentence_pairs(875), {.max_tokens = 1024, .sorted = true}},
      {"fine", sentence_pairs(875), {.max_tokens = 512, .multiple = 1, .row_multiple = 1}},
      {"one row over full batches", std::vector<PairLength>(65, {16, 16}), {.max_tokens = 1024}},
      {"long rows", mixed, {}},
      {"one row", {{7, 9}}, {}},
      {"no room", {{3, 1}, {9, 1}, {1, 1}}, {.max_tokens = 1, .multiple = 1}}};
}

TEST_CASE("pair batches: every row once an epoch, within the limit and its shape") {
  for (const PairCase& c : pair_cases()) {
    CAPTURE(c.name);
    PairBatches batches(c.lengths, c.options);
    const std::vector<Sizes> shapes = batches.shapes();
    for (std::uint32_t epoch : {0u, 1u, 7u}) {
      Rows all;
      for (std::int64_t step = 0; step < batches.steps(); ++step) {
        const PlannedBatch batch = batches.at(epoch, step);
        PairLength longest;
        for (std::int64_t row : batch.rows) {
          const PairLength& length = c.lengths[static_cast<std::size_t>(row)];
          longest = {std::max(longest.source, length.source),
                     std::max(longest.target, length.target)};
          all.push_back(row);
        }
        CHECK(batch.sizes[1] == bucket_of(longest.source, c.options.multiple));
        CHECK(batch.sizes[2] == bucket_of(longest.target, c.options.multiple));
        CHECK(std::ssize(batch.rows) >= 1);
        CHECK(std::ssize(batch.rows) <= batch.capacity());
        CHECK(
            (batch.capacity() == 1 ||
             batch.capacity() * std::max(batch.sizes[1], batch.sizes[2]) <= c.options.max_tokens));
        CHECK(std::ranges::find(shapes, batch.sizes) != shapes.end());
      }
      std::ranges::sort(all);
      Rows expected(c.lengths.size());
      std::iota(expected.begin(), expected.end(), 0);
      CHECK((all == expected));
    }
  }
}

TEST_CASE("pair batches: cut where fairseq cuts") {
  for (PairCase c : pair_cases()) {
    CAPTURE(c.name);
    c.options.sorted = true;
    PairBatches batches(c.lengths, c.options);
    std::vector<std::size_t> counts;
    for (std::int64_t step = 0; step < batches.steps(); ++step) {
      counts.push_back(batches.at(0, step).rows.size());
    }
    CHECK(counts == counts_by_definition(c.lengths, c.options));
  }
}

TEST_CASE("pair batches: a last batch that is no multiple of eight has room for all its rows") {
  const std::vector<PairLength> lengths(12, PairLength{30, 32});
  PairBatches batches(lengths, {.max_tokens = 12 * 32});
  REQUIRE(batches.steps() == 1);
  CHECK(batches.at(0, 0).rows.size() == 12);
  CHECK(batches.at(0, 0).capacity() == 12);
  CHECK(batches.shapes().front()[0] == 12);
}

TEST_CASE("pair batches: in evaluation by source, then target, then number") {
  PairBatches batches({{3, 9}, {2, 5}, {3, 1}, {2, 5}, {1, 20}}, {.multiple = 1, .sorted = true});
  REQUIRE(batches.steps() == 1);
  const auto rows = batches.at(5, 0).rows;
  CHECK(Rows(rows.begin(), rows.end()) == Rows{4, 1, 3, 2, 0});
}

TEST_CASE("pair batches: a pure function of seed and epoch") {
  const auto epoch_of = [](std::uint64_t seed, std::uint32_t epoch) {
    PairBatches batches(sentence_pairs(300), {.max_tokens = 512, .seed = seed});
    std::vector<Rows> all;
    for (std::int64_t step = 0; step < batches.steps(); ++step) {
      const auto rows = batches.at(epoch, step).rows;
      all.emplace_back(rows.begin(), rows.end());
    }
    return all;
  };
  CHECK((epoch_of(1, 2) == epoch_of(1, 2)));
  CHECK((epoch_of(1, 2) != epoch_of(2, 1)));
  CHECK((epoch_of(1, 2) != epoch_of(1, 3)));
  CHECK((epoch_of(1, 0) != epoch_of(2, 0)));
  // Two epochs by turns, as a stream that is read ahead asks for them.
  PairBatches batches(sentence_pairs(300), {.max_tokens = 512, .seed = 1});
  const PlannedBatch now = batches.at(2, 0);
  batches.at(3, 0);
  CHECK((Rows(now.rows.begin(), now.rows.end()) == epoch_of(1, 2)[0]));
}

TEST_CASE("pair batches: equal pairs change places, and so do batches") {
  const auto rows_of = [](PairBatches& batches, std::uint32_t epoch, std::int64_t step) {
    const auto rows = batches.at(epoch, step).rows;
    return Rows(rows.begin(), rows.end());
  };
  PairBatches equal(std::vector<PairLength>(64, {5, 5}), {});
  REQUIRE(equal.steps() == 1);
  CHECK(rows_of(equal, 0, 0) != rows_of(equal, 1, 0));
  std::vector<PairLength> lengths;
  for (std::int64_t length = 1; length <= 64; ++length) lengths.push_back({length, length});
  PairBatches unequal(lengths, {.max_tokens = 64, .multiple = 1});
  REQUIRE(unequal.steps() > 20);
  std::vector<Rows> orders[2];
  for (std::uint32_t epoch : {0u, 1u}) {
    for (std::int64_t step = 0; step < unequal.steps(); ++step) {
      orders[epoch].push_back(rows_of(unequal, epoch, step));
    }
  }
  CHECK((orders[0] != orders[1]));
  for (std::vector<Rows>& order : orders) std::ranges::sort(order);
  CHECK((orders[0] == orders[1]));
}

TEST_CASE("pair batches: few shapes and little padding") {
  const PairBatches batches(sentence_pairs(20000), {});
  CHECK(batches.shapes().size() <= 60);
  CHECK(batches.padding() > 0);
  CHECK(batches.padding() < 0.25);
  // The most positions first.
  const auto positions = [](const Sizes& shape) { return shape[0] * (shape[1] + shape[2]); };
  CHECK(std::ranges::is_sorted(batches.shapes(), std::greater(), positions));
  CHECK(PairBatches({{8, 8}}, {.max_tokens = 8}).padding() == 0);
}

TEST_CASE("pair batches: refusals") {
  const auto refused = [](std::string_view text, const PairBatchOptions& options,
                          const PairLength& length = {1, 1}) {
    return refuses(ErrorKind::kUsage, text, [&] { PairBatches({length}, options); });
  };
  CHECK(refused("max_tokens: expected 1 to 2^31 - 1, got 0", {.max_tokens = 0}));
  CHECK(refused("multiple: expected 1 to 2^31 - 1, got 0", {.multiple = 0}));
  CHECK(refused("row_multiple: expected 1 to 2^31 - 1, got 0", {.row_multiple = 0}));
  CHECK(refused("source length: expected 1 to 2^31 - 1, got 0", {}, {0, 1}));
  CHECK(refused("target length: expected 1 to 2^31 - 1, got 0", {}, {1, 0}));
  CHECK(refuses(ErrorKind::kUsage, "rows: expected 1", [] { PairBatches({}, {}); }));
  PairBatches batches({{1, 1}}, {});
  CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 0, got 1", [&] { batches.at(0, 1); }));
}

}  // namespace
}  // namespace keel::data
