// Batch order: a permutation, a pure function of (seed, epoch); and copying rows.
#include "frontend/data/batcher.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/frontend/data/row_lists.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;

Rows epoch_of(Batcher& batcher, std::uint32_t epoch) {
  Rows all;
  for (std::int64_t step = 0; step < batcher.steps(); ++step) {
    const auto rows = batcher.rows(epoch, step);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Batcher shuffled(std::int64_t rows, std::int64_t batch, std::uint64_t seed = 1) {
  return Batcher(rows, {.batch = batch, .keep_partial = true, .seed = seed});
}

TEST_CASE("batcher: an epoch holds every row once") {
  for (std::int64_t n : {1, 2, 7, 64, 1000}) {
    for (std::int64_t batch : {1, 3, 64, 2000}) {
      CAPTURE(n);
      CAPTURE(batch);
      Batcher batcher = shuffled(n, batch);
      Rows rows = epoch_of(batcher, 5);
      std::ranges::sort(rows);
      CHECK(rows == identity(n));
    }
  }
}

TEST_CASE("batcher: batch sizes, with and without the last rows") {
  Batcher kept(10, {.batch = 4, .keep_partial = true});
  CHECK(kept.steps() == 3);
  CHECK(kept.rows(0, 1).size() == 4);
  CHECK(kept.rows(0, 2).size() == 2);
  Batcher dropped(10, {.batch = 4});
  CHECK(dropped.steps() == 2);
  CHECK(dropped.rows(0, 1).size() == 4);
  CHECK(Batcher(8, {.batch = 4, .keep_partial = true}).steps() == 2);
  CHECK(Batcher(8, {.batch = 8}).steps() == 1);
}

TEST_CASE("batcher: without shuffling rows ascend") {
  Batcher batcher(10, {.batch = 3, .shuffle = false, .keep_partial = true});
  CHECK(epoch_of(batcher, 0) == identity(10));
  CHECK(epoch_of(batcher, 7) == identity(10));
}

TEST_CASE("batcher: the order depends on the seed and the epoch, not on the batch size") {
  Batcher a = shuffled(100, 10), b = shuffled(100, 7), c = shuffled(100, 10, 2);
  CHECK(epoch_of(a, 3) == epoch_of(b, 3));
  CHECK(epoch_of(a, 3) != epoch_of(a, 4));
  CHECK(epoch_of(a, 3) != epoch_of(c, 3));
}

TEST_CASE("batcher: any position can be resumed") {
  Batcher straight = shuffled(50, 8);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t step = 0; step < straight.steps(); ++step) {
      Batcher resumed = shuffled(50, 8);
      CHECK(std::ranges::equal(straight.rows(epoch, step), resumed.rows(epoch, step)));
    }
  }
  Batcher back = shuffled(50, 8);
  const Rows first = epoch_of(back, 0);
  epoch_of(back, 9);
  CHECK(epoch_of(back, 0) == first);
}

TEST_CASE("batcher: the order of an epoch never changes between versions") {
  Batcher batcher = shuffled(10, 10);
  CHECK(epoch_of(batcher, 0) == Rows{0, 7, 1, 9, 8, 5, 3, 2, 6, 4});
  CHECK(epoch_of(batcher, 1) == Rows{7, 9, 0, 2, 5, 4, 8, 3, 6, 1});
}

TEST_CASE("batcher: every row is equally likely at every place") {
  constexpr std::size_t kRows = 5;
  std::array<std::array<int, kRows>, kRows> seen{};
  Batcher batcher = shuffled(kRows, kRows);
  for (std::uint32_t epoch = 0; epoch < 5000; ++epoch) {
    const auto rows = batcher.rows(epoch, 0);
    for (std::size_t place = 0; place < kRows; ++place) {
      ++seen[place][static_cast<std::size_t>(rows[place])];
    }
  }
  for (const auto& place : seen) {
    for (int count : place) CHECK(std::abs(count - 1000) < 140);  // five standard deviations
  }
}

TEST_CASE("batcher: batches lie in one buffer that never moves") {
  Batcher batcher = shuffled(50, 8);
  const std::int64_t* start = batcher.rows(0, 0).data();
  CHECK(batcher.rows(3, 2).data() == start + 16);
}

TEST_CASE("batcher: refusals") {
  const auto refused = [](std::string_view text, std::int64_t rows, const BatchOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { Batcher(rows, options); });
  };
  CHECK(refused("batch: expected 1 or more, got 0", 10, {.batch = 0}));
  CHECK(refused("batch: expected 1 or more, got -3", 10, {.batch = -3}));
  CHECK(refused("rows: expected 1 to", 0, {.batch = 4}));
  CHECK(refused("rows: expected 1 to", std::int64_t{1} << 32, {.batch = 4}));
  CHECK(refused("batch: expected at most the 10 rows, got 11", 10, {.batch = 11}));
  Batcher batcher = shuffled(10, 4);
  for (std::int64_t step : {-1, 3}) {
    CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 2", [&] { batcher.rows(0, step); }));
  }
}

TEST_CASE("gather: rows as they are") {
  const Tensor column = Tensor::of<std::int32_t>({3, 2}, {0, 1, 10, 11, 20, 21});
  std::vector<std::int32_t> out(6, -1);
  gather(column, Rows{2, 0}, std::as_writable_bytes(std::span(out).first(4)));
  CHECK(out == std::vector<std::int32_t>{20, 21, 0, 1, -1, -1});
}

TEST_CASE("gather: u8 rows scaled to f32") {
  Tensor column(DType::kU8, {3, 28, 28});
  const auto values = column.as<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 7 + i / 784);
  std::vector<float> out(2 * 784 + 1, -1);
  gather(column, Rows{2, 1}, {.scale = 0.25f, .offset = -8}, std::span(out).first(2 * 784));
  for (std::size_t i = 0; i < 784; ++i) {
    REQUIRE(out[i] == values[2 * 784 + i] * 0.25f - 8);
    REQUIRE(out[784 + i] == values[784 + i] * 0.25f - 8);
  }
  CHECK(out.back() == -1);
}

TEST_CASE("gather: refusals") {
  const Tensor bytes(DType::kU8, {3, 2}), floats(DType::kF32, {3, 2});
  std::vector<float> out(4);
  const std::span<std::byte> raw = std::as_writable_bytes(std::span(out));
  const auto refused = [](std::string_view text, auto&& action) {
    return refuses(ErrorKind::kUsage, text, action);
  };
  CHECK(refused("row: expected 0 to 2, got 3", [&] { gather(bytes, Rows{0, 3}, {}, out); }));
  CHECK(refused("row: expected 0 to 2, got -1", [&] { gather(floats, Rows{-1, 0}, raw); }));
  CHECK(refused("room for 2 elements, got 4", [&] { gather(bytes, Rows{0}, {}, out); }));
  CHECK(refused("room for 6 elements, got 4", [&] { gather(floats, Rows{0, 1, 2}, raw); }));
  CHECK(refused("whole f32 elements, got 15", [&] { gather(floats, Rows{0, 1}, raw.first(15)); }));
  CHECK(refused("expected u8", [&] { gather(floats, Rows{0, 1}, {}, out); }));
  CHECK(refused("got a scalar", [&] { gather(Tensor::scalar(1), Rows{0}, raw); }));
}

}  // namespace
}  // namespace keel::data
