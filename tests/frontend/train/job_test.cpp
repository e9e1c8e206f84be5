// A recipe with its network: what is read when, and what other settings keep.
#include "frontend/train/job.h"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using test::small_config;
using test::small_job;

TEST_CASE("job: other settings keep what the network has of the data") {
  const task::Assets assets = small_job({}, "text_classifier").network().assets();
  const Job job =
      small_job({}, "text_classifier").with({{"train.batch", "64"}, {"data.train_rows", "50"}});
  CHECK(job.train().batch == 64);
  CHECK(job.network().assets() == assets);
  CHECK(job.splits().stream(task::Split::kTrain, {.batch = 64, .shuffle = 1})->rows() == 50);
}

TEST_CASE("job: settings that are unknown or do not fit are refused") {
  test::check_refused([] { small_job().with({{"train.bach", "64"}}); }, "key 'train.bach'");
  test::check_refused([] { small_job().with({{"train.batch", "0"}}); }, "train.batch: expected");
}

TEST_CASE("job: the data of a checkpoint's network are read when they are asked for") {
  const task::Assets assets = small_job({}, "text_classifier").network().assets();
  const Job job(small_config({"data.source=/nowhere"}, "text_classifier"), assets);
  CHECK(job.network().class_names().size() == 2);
  test::check_refused([&] { job.splits(); }, "/nowhere: no such folder of data", "",
                      ErrorKind::kIo);
  test::check_refused([] { Job(small_config({"data.source=/nowhere"}, "text_classifier")); },
                      "/nowhere: no such folder of data", "", ErrorKind::kIo);
}

// Fewer sentences have fewer words: numbered by themselves they would be other rows.
TEST_CASE("job: the data of a checkpoint's network are numbered as it had them") {
  const test::Settings fewer{"data.train_rows=50"};
  const Job whole = small_job({}, "text_classifier"), other = small_job(fewer, "text_classifier");
  const Job restored(small_config(fewer, "text_classifier"), whole.network().assets());
  REQUIRE(other.network().assets() != whole.network().assets());
  CHECK(restored.network().assets() == whole.network().assets());
  std::vector<std::int64_t> rows(50);
  std::iota(rows.begin(), rows.end(), 0);
  const auto words = [&](const Job& job) {
    const auto stream = job.splits().stream(task::Split::kTrain, {});
    const auto tokens = stream->pick(rows).values[0].as<std::int32_t>();
    return std::vector<std::int32_t>(tokens.begin(), tokens.end());
  };
  CHECK(words(restored) == words(whole));
  CHECK(words(restored) != words(other));
}

TEST_CASE("job: assets that are missing are named") {
  test::check_refused([] { Job(small_config({}, "text_classifier"), task::Assets{}); },
                      "expected the asset vocabulary, got none", "", ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::train
