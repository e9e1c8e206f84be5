// The counts of `keel bench ranks`, and its model of them.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "bench/rank_link.h"
#include "bench/rank_step.h"
#include "tests/support/small_run.h"
#include "tests/support/thread_ranks.h"

namespace keel::bench {
namespace {

TEST_CASE("rank bench: the link is found of which the times are made") {
  const RankLink link{.latency = 3e-6, .rate = 2e9};
  for (const int ranks : {2, 5}) {
    std::vector<SumTime> sums;
    for (double bytes = 1 << 10; bytes < 1 << 26; bytes *= 4) {
      sums.push_back({bytes, link.sum_seconds(bytes, ranks), 0});
    }
    const RankLink found = fitted_link(sums, ranks);
    CHECK(found.latency == doctest::Approx(3e-6));
    CHECK(found.rate == doctest::Approx(2e9));
  }
}

// A line through both times would meet 0 bytes at -1 s.
TEST_CASE("rank bench: noise gives no negative latency") {
  const RankLink found = fitted_link({{1, 1, 0}, {2, 3, 0}}, 2);
  CHECK(found.latency == 0);
  CHECK(found.rate == doctest::Approx(13. / 15));
}

TEST_CASE("rank bench: a sum sends almost twice its bytes, and waits for every other rank twice") {
  const RankLink link{.latency = 1, .rate = 8};
  CHECK(link.sum_seconds(16, 2) == 2 * (1 + 1));
  CHECK(link.sum_seconds(16, 1) == 0);
  CHECK(link.gather_seconds(16, 3) == 2 * (1 + 2));
}

// All parameters of the small network, and a state of none.
TEST_CASE("rank bench: a step sums its gradients once, and gathers the shards' records") {
  const double parameters = 784 * 16 + 16 * 16 + 16 * 10 + 10 + 4 * 16;
  for (const Reduction reduction : {Reduction::kFixed, Reduction::kFast}) {
    test::run_ranks(2, [&](Communicator& all) {
      const train::Job job = test::small_job({"train.shards=2"});
      const auto backend = make_backend(default_backend());
      const RankStep step = bench_rank_step(*backend, job, {all, reduction}, 3);
      check(step.summed_bytes == 4 * parameters, ErrorKind::kCheckFailed, "{} bytes are summed",
            step.summed_bytes);
      check(step.gatherings == 1 && step.gathered_bytes > 0, ErrorKind::kCheckFailed,
            "{} gatherings of {} bytes", step.gatherings, step.gathered_bytes);
      check(step.items == double(job.train().batch), ErrorKind::kCheckFailed, "{} items",
            step.items);
      check(step.among > 0 && step.among <= step.seconds, ErrorKind::kCheckFailed, "{} s of {} s",
            step.among, step.seconds);
    });
  }
}

}  // namespace
}  // namespace keel::bench
