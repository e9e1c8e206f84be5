// Batches measured in tokens: every row once, within the limit, in shapes that are known before,
// as a pure function of the seed and the epoch.
#include "frontend/data/token_batches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "src/core/rng.h"
#include "tests/frontend/data/row_lists.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;
using Epoch = std::vector<Rows>;

// Lengths of about the spread that sentences of film reviews have: mean 21, deviation 9.
std::vector<std::int64_t> sentence_lengths(std::int64_t rows, std::uint64_t seed = 1) {
  const Philox philox(seed, stream_of("lengths"));
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double normal = philox.normal(static_cast<std::uint64_t>(row));
    lengths.push_back(std::clamp<std::int64_t>(std::llround(21 + 9.4 * normal), 1, 59));
  }
  return lengths;
}

Epoch epoch_of(TokenBatches& batches, std::uint32_t epoch) {
  Epoch all;
  for (std::int64_t step = 0; step < batches.steps(epoch); ++step) {
    const PlannedBatch batch = batches.at(epoch, step);
    all.emplace_back(batch.rows.begin(), batch.rows.end());
  }
  return all;
}

Rows joined(const Epoch& epoch) {
  Rows rows;
  for (const Rows& batch : epoch) rows.insert(rows.end(), batch.begin(), batch.end());
  return rows;
}

struct Case {
  std::string name;
  std::vector<std::int64_t> lengths;
  TokenBatchOptions options;
};

std::vector<Case> cases() {
  std::vector<std::int64_t> mixed = sentence_lengths(500);
  mixed.insert(mixed.begin() + 100, {5000, 1, 4096, 4097, 300, 1});
  std::vector<Case> all = {
      {"reviews", sentence_lengths(875), {.max_tokens = 1024}},
      {"small pools", sentence_lengths(875), {.max_tokens = 512, .pool = 2, .multiple = 8}},
      {"one row over full batches", std::vector<std::int64_t>(65, 16), {.max_tokens = 1024}},
      {"long rows", mixed, {}},
      {"one row", {7}, {}},
      {"no room", {3, 9, 1}, {.max_tokens = 1, .multiple = 1}}};
  for (std::size_t i = 0, n = all.size(); i < n; ++i) {
    all.push_back(all[i]);
    all.back().name += ", sorted";
    all.back().options.sorted = true;
  }
  return all;
}

TEST_CASE("token batches: every row exactly once an epoch") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    TokenBatches batches(c.lengths, c.options);
    for (std::uint32_t epoch : {0u, 1u, 7u}) {
      Rows rows = joined(epoch_of(batches, epoch));
      std::ranges::sort(rows);
      CHECK(rows == identity(batches.rows()));
    }
  }
}

TEST_CASE("token batches: the padded size obeys max_tokens unless a row is alone") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    TokenBatches batches(c.lengths, c.options);
    for (std::int64_t step = 0; step < batches.steps(3); ++step) {
      const PlannedBatch batch = batches.at(3, step);
      std::int64_t longest = 0;
      for (std::int64_t row : batch.rows) {
        longest = std::max(longest, c.lengths[static_cast<std::size_t>(row)]);
      }
      CHECK(batch.sizes[1] == bucket_of(longest, c.options.multiple));
      CHECK(std::ssize(batch.rows) >= 1);
      CHECK(std::ssize(batch.rows) <= batch.capacity());
      CHECK((batch.capacity() == 1 || batch.capacity() * batch.sizes[1] <= c.options.max_tokens));
      CHECK((batch.capacity() + 1) * batch.sizes[1] > c.options.max_tokens);  // nor is room wasted
    }
  }
}

// A batch ends only because one row more would not fit, or because its pool ends.
TEST_CASE("token batches: batches are filled") {
  TokenBatches batches(sentence_lengths(875), {.max_tokens = 1024, .sorted = true});
  for (std::int64_t step = 0; step + 1 < batches.steps(0); ++step) {
    const PlannedBatch batch = batches.at(0, step), next = batches.at(0, step + 1);
    const std::vector<std::int64_t> lengths = sentence_lengths(875);
    const std::int64_t length = bucket_of(lengths[static_cast<std::size_t>(next.rows.front())], 4);
    CHECK((std::ssize(batch.rows) + 1) * length > 1024);
  }
}

TEST_CASE("token batches: the short last batch stays") {
  TokenBatches batches(std::vector<std::int64_t>(65, 16), {.max_tokens = 1024});
  REQUIRE(batches.steps(0) == 2);
  CHECK(batches.at(0, 0).rows.size() + batches.at(0, 1).rows.size() == 65);
  CHECK(std::min(batches.at(0, 0).rows.size(), batches.at(0, 1).rows.size()) == 1);
  CHECK(batches.at(0, 0).capacity() == 64);
  CHECK(batches.at(0, 1).capacity() == 64);
}

TEST_CASE("token batches: a row beyond max_tokens is a batch of its own") {
  TokenBatches batches({10, 5000, 10, 9000, 10}, {.max_tokens = 4096, .sorted = true});
  REQUIRE(batches.steps(0) == 3);
  CHECK(batches.at(0, 0).rows.size() == 3);
  for (std::int64_t step : {1, 2}) {
    CHECK(batches.at(0, step).capacity() == 1);
    CHECK(batches.at(0, step).rows.size() == 1);
  }
  CHECK(batches.at(0, 1).sizes[1] >= 5000);
  CHECK(batches.at(0, 2).sizes[1] >= 9000);
}

TEST_CASE("token batches: orders differ between seeds and epochs, and (1, 2) from (2, 1)") {
  const std::vector<std::int64_t> lengths = sentence_lengths(300);
  std::set<Epoch> orders;
  for (std::uint64_t seed : {1, 2, 3}) {
    TokenBatches batches(lengths, {.max_tokens = 512, .seed = seed});
    for (std::uint32_t epoch : {1u, 2u, 3u}) orders.insert(epoch_of(batches, epoch));
  }
  CHECK(orders.size() == 9);
}

// The draw decides not only which rows meet but also when a batch of short rows comes.
TEST_CASE("token batches: the order of the batches is shuffled, in training alone") {
  const std::vector<std::int64_t> lengths = sentence_lengths(875);
  const auto batch_lengths = [&](bool sorted, std::uint32_t epoch) {
    TokenBatches batches(lengths, {.max_tokens = 512, .sorted = sorted});
    Rows result;
    for (std::int64_t step = 0; step < batches.steps(epoch); ++step) {
      result.push_back(batches.at(epoch, step).sizes[1]);
    }
    return result;
  };
  CHECK(!std::ranges::is_sorted(batch_lengths(false, 0)));
  CHECK(batch_lengths(false, 0) != batch_lengths(false, 1));
  CHECK(std::ranges::is_sorted(batch_lengths(true, 0)));
}

TEST_CASE("token batches: sorted rows ascend over the whole split, equal ones by their numbers") {
  const std::vector<std::int64_t> lengths = sentence_lengths(875);
  TokenBatches batches(lengths, {.max_tokens = 512, .pool = 1, .sorted = true});
  const Rows rows = joined(epoch_of(batches, 0));
  CHECK(std::ranges::is_sorted(rows, {}, [&](std::int64_t row) {
    return std::pair(lengths[static_cast<std::size_t>(row)], row);
  }));
  CHECK(joined(epoch_of(batches, 5)) == rows);
}

TEST_CASE("token batches: rows of one length meet others in the next epoch") {
  TokenBatches batches(std::vector<std::int64_t>(64, 10), {.max_tokens = 96});
  const auto together = [&](std::uint32_t epoch) {
    std::set<Rows> sets;
    for (Rows& rows : epoch_of(batches, epoch)) {
      std::ranges::sort(rows);
      sets.insert(rows);
    }
    return sets;
  };
  CHECK(together(0) != together(1));
}

TEST_CASE("token batches: any position can be resumed, in any order of asking") {
  const std::vector<std::int64_t> lengths = sentence_lengths(300);
  const TokenBatchOptions options{.max_tokens = 512, .pool = 3, .seed = 4};
  TokenBatches straight(lengths, options), jumping(lengths, options);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t step = 0; step < straight.steps(epoch); ++step) {
      const PlannedBatch batch = straight.at(epoch, step);
      TokenBatches fresh(lengths, options);
      CHECK(std::ranges::equal(fresh.at(epoch, step).rows, batch.rows));
      jumping.at((epoch + 3) * 5, 0);
      CHECK(std::ranges::equal(jumping.at(epoch, step).rows, batch.rows));
    }
  }
}

TEST_CASE("token batches: the rows of an epoch stay while the next is looked at") {
  TokenBatches batches(sentence_lengths(300), {.max_tokens = 512});
  const PlannedBatch batch = batches.at(4, 0);
  const Rows rows(batch.rows.begin(), batch.rows.end());
  batches.at(5, 0);
  CHECK(batches.at(4, 0).rows.data() == batch.rows.data());
  CHECK(std::ranges::equal(batch.rows, rows));
}

TEST_CASE("token batches: the plan of an epoch never changes between versions") {
  TokenBatches batches({3, 9, 4, 9, 3, 12, 8, 1}, {.max_tokens = 24, .pool = 2, .seed = 1});
  CHECK(epoch_of(batches, 0) == Epoch{{2, 3}, {5}, {6, 1}, {7, 0, 4}});
  CHECK(epoch_of(batches, 1) == Epoch{{5}, {3}, {7, 0, 4, 2}, {6, 1}});
}

TEST_CASE("token batches: shapes() covers thirty epochs, one size a length, the largest first") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    TokenBatches batches(c.lengths, c.options);
    const std::vector<Sizes> sizes = batches.shapes();
    std::map<std::int64_t, std::int64_t> capacity_of;
    for (const Sizes& size : sizes) {
      CHECK(capacity_of.emplace(size[1], size[0]).second);
    }
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      CHECK(sizes[i - 1][0] * sizes[i - 1][1] >= sizes[i][0] * sizes[i][1]);
    }
    for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
      for (std::int64_t step = 0; step < batches.steps(epoch); ++step) {
        const PlannedBatch batch = batches.at(epoch, step);
        REQUIRE(capacity_of.contains(batch.sizes[1]));
        CHECK(capacity_of[batch.sizes[1]] == batch.capacity());
      }
    }
  }
}

TEST_CASE("token batches: buckets") {
  const auto grid = [](std::int64_t multiple) {
    Rows buckets;
    for (std::int64_t length = 1; length <= 260; ++length) {
      const std::int64_t bucket = bucket_of(length, multiple);
      CHECK(bucket >= length);
      CHECK(bucket % multiple == 0);
      CHECK(bucket_of(bucket, multiple) == bucket);
      if (buckets.empty() || buckets.back() != bucket) buckets.push_back(bucket);
    }
    return buckets;
  };
  CHECK(grid(8) == Rows{8, 16, 24, 32, 40, 48, 56, 64, 80, 104, 136, 176, 224, 280});
  CHECK(grid(4) == Rows{4,  8,  12, 16, 20, 24,  28,  32,  36,  40,  44, 48,
                        52, 56, 60, 64, 80, 100, 128, 160, 200, 252, 316});
  CHECK(grid(1).size() == 64 + 7);
  CHECK(grid(100) == Rows{100, 200, 300});
  // Beyond 64 a row is padded by less than a quarter of its length, and a multiple.
  for (std::int64_t length = 65; length < 10000; ++length) {
    CHECK(bucket_of(length, 8) < length * 5 / 4 + 8);
  }
}

TEST_CASE("token batches: little is padding") {
  TokenBatches batches(sentence_lengths(8608), {});
  std::int64_t positions = 0, tokens = 0;
  for (std::int64_t step = 0; step < batches.steps(2); ++step) {
    const PlannedBatch batch = batches.at(2, step);
    positions += batch.capacity() * batch.sizes[1];
  }
  for (std::int64_t length : sentence_lengths(8608)) tokens += length;
  const double share = 1 - static_cast<double>(tokens) / static_cast<double>(positions);
  CHECK(batches.padding(2) == doctest::Approx(share).epsilon(1e-12));
  CHECK(batches.padding(2) < 0.15);
  // Without pools rows of all lengths meet and the longest decides.
  TokenBatches unsorted(sentence_lengths(8608), {.pool = 1});
  CHECK(unsorted.padding(2) > batches.padding(2));
  CHECK(batches.shapes().size() < 17);
}

TEST_CASE("token batches: refusals") {
  const auto refused = [](std::string_view text, std::vector<std::int64_t> lengths,
                          const TokenBatchOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { TokenBatches(lengths, options); });
  };
  CHECK(refused("max_tokens: expected 1 to 2^31 - 1, got 0", {1}, {.max_tokens = 0}));
  CHECK(refused("pool: expected 1 to", {1}, {.pool = -1}));
  CHECK(refused("multiple: expected 1 to", {1}, {.multiple = 0}));
  CHECK(refused("rows: expected 1 to 2^31 - 1, got 0", {}, {}));
  CHECK(refused("length: expected 1 to 2^31 - 1, got 0", {4, 0}, {}));
  CHECK(refused("length: expected 1 to", {std::int64_t{1} << 31}, {}));
  TokenBatches batches({1, 2, 3}, {});
  for (std::int64_t step : {-1, 1}) {
    CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 0", [&] { batches.at(0, step); }));
  }
}

}  // namespace
}  // namespace keel::data
