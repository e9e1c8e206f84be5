// Shards of batches: contiguous rows, every row once, no matter which rank reads which shards.
#include "frontend/data/shard_cut.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/small_run.h"

namespace keel::data {
namespace {

// Rows, sizes and first row of what a stream gives in an epoch, step after step.
struct Given {
  std::vector<std::vector<std::int64_t>> rows;
  std::vector<std::int64_t> first_rows, places;
};

Given given_by(const train::Job& job, const ShardRange& shard_range, std::uint32_t epoch) {
  const auto stream = job.splits().stream(
      Split::kTrain, {.batch = job.train().batch, .shuffle = 1, .shard_range = shard_range});
  Given given;
  for (std::int64_t step = 0; step < stream->steps(epoch); ++step) {
    const Batch& batch = stream->at(epoch, step);
    std::vector<std::int64_t> rows = batch.rows;
    std::erase(rows, -1);
    CHECK(batch.items == doctest::Approx(stream->items(epoch, step)));
    given.rows.push_back(rows);
    given.first_rows.push_back(batch.first_row);
    given.places.push_back(std::ssize(batch.rows));
  }
  return given;
}

TEST_CASE("shards: the pieces of each batch are its rows in order") {
  for (const char* model : {"mnist_mlp", "text_classifier", "translation", "handwriting"}) {
    const train::Job job = test::small_job({}, model);
    const Given whole = given_by(job, {}, 1);
    for (const std::int64_t shards : {2, 3, 7}) {
      CAPTURE(model);
      CAPTURE(shards);
      const Given cut = given_by(job, {shards, 0, shards}, 1);
      REQUIRE(cut.rows.size() == whole.rows.size() * std::size_t(shards));
      for (std::size_t b = 0; b < whole.rows.size(); ++b) {
        std::vector<std::int64_t> joined;
        for (std::size_t s = 0; s < std::size_t(shards); ++s) {
          const std::size_t at = b * std::size_t(shards) + s;
          CHECK(cut.first_rows[at] == std::ssize(joined));
          joined.insert(joined.end(), cut.rows[at].begin(), cut.rows[at].end());
          // A batch without padding is cut into shards without padding.
          const bool is_full = std::ssize(whole.rows[b]) == whole.places[b];
          if (is_full) CHECK(cut.places[at] == std::ssize(cut.rows[at]));
        }
        CHECK(joined == whole.rows[b]);
      }
    }
  }
}

TEST_CASE("shards: what ranks read together is what one reads, each row once") {
  const train::Job job = test::small_job({"train.batch=20"});
  const Given all = given_by(job, {5, 0, 5}, 2);
  std::vector<std::vector<std::int64_t>> joined;
  const std::vector<Given> parts{given_by(job, {5, 0, 2}, 2), given_by(job, {5, 2, 4}, 2),
                                 given_by(job, {5, 4, 5}, 2)};
  for (std::size_t batch = 0; batch < all.rows.size() / 5; ++batch) {
    for (const Given& part : parts) {
      const std::size_t own = part.rows.size() * 5 / all.rows.size();
      const auto first = part.rows.begin() + std::ptrdiff_t(batch * own);
      joined.insert(joined.end(), first, first + std::ptrdiff_t(own));
    }
  }
  CHECK(joined == all.rows);
}

TEST_CASE("shards: an update's micro-batches of one shard come before the next shard") {
  const ShardRange shard_range{.shards = 4, .first = 1, .end = 3, .accumulate = 3};
  // Seven batches are updates of three, three and one.
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::int64_t step = 0; step < 14; ++step) {
    const ShardPlace place = shard_place(shard_range, 7, step);
    places.emplace_back(place.batch, place.shard);
  }
  CHECK(places == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1},
                                                                     {1, 1},
                                                                     {2, 1},
                                                                     {0, 2},
                                                                     {1, 2},
                                                                     {2, 2},  //
                                                                     {3, 1},
                                                                     {4, 1},
                                                                     {5, 1},
                                                                     {3, 2},
                                                                     {4, 2},
                                                                     {5, 2},  //
                                                                     {6, 1},
                                                                     {6, 2}});
  CHECK_THROWS_AS(shard_place(shard_range, 7, 14), Error);
}

TEST_CASE("shards: by batch, the shards of a micro-batch come before those of the next") {
  const ShardRange shard_range{
      .shards = 4, .first = 1, .end = 3, .accumulate = 3, .by_batch = true};
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::int64_t step = 0; step < 10; ++step) {
    const ShardPlace place = shard_place(shard_range, 5, step);
    places.emplace_back(place.batch, place.shard);
    CHECK(place.first_batch == (step < 6 ? 0 : 3));
  }
  CHECK(places == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1},
                                                                     {0, 2},
                                                                     {1, 1},
                                                                     {1, 2},
                                                                     {2, 1},
                                                                     {2, 2},  //
                                                                     {3, 1},
                                                                     {3, 2},
                                                                     {4, 1},
                                                                     {4, 2}});
}

TEST_CASE("shards: of fewer rows than shards some have none, and count nothing") {
  const std::vector<std::int64_t> rows{8, 9};
  std::vector<std::size_t> sizes;
  for (std::int64_t s = 0; s < 5; ++s) sizes.push_back(shard_rows(rows, s, {5, 0, 5}).size());
  CHECK(sizes == std::vector<std::size_t>{0, 0, 1, 0, 1});
  const train::Job job = test::small_job({"train.batch=2", "data.train_rows=0"});
  const Given cut = given_by(job, {5, 0, 5}, 0);
  CHECK(cut.rows[0].empty());
  CHECK(cut.rows[2].size() == 1);
  CHECK(cut.first_rows[4] == 1);
}

}  // namespace
}  // namespace keel::data
