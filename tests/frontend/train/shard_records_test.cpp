// The records of all shards, whichever rank ran them.
#include "frontend/train/shard_records.h"

#include <doctest/doctest.h>

#include "src/core/error.h"
#include "tests/support/thread_ranks.h"

namespace keel::train {
namespace {

TEST_CASE("shard records: a signal to any rank reaches all") {
  for (const int signalled : {0, 1, 2}) {
    test::run_ranks(3, [&](Communicator& all) {
      ShardRecords records(all, 3, 0, 0);
      records.exchange({records.empty()}, all.rank() == signalled ? 15 : 0);
      check(records.signal() == 15, ErrorKind::kCheckFailed, "rank {} has signal {}", all.rank(),
            records.signal());
    });
  }
}

// Shard s has the loss s + 1 and monitors -s; shard 3 has no row.
TEST_CASE("shard records: sums, and the largest of what shards with rows have") {
  test::run_ranks(3, [](Communicator& all) {
    ShardRecords records(all, 4, 1, 2);
    std::vector<ShardRecord> own;
    const std::int64_t first = all.rank(), count = all.rank() == 2 ? 2 : 1;
    for (std::int64_t s = first; s < first + count; ++s) {
      const double shard = double(s);
      own.push_back({{shard + 1}, s == 3 ? 0. : 2., {-shard}, {shard, s == 3 ? 99. : -1 - shard}});
    }
    records.exchange(own, 0);
    const bool holds = records.loss() == 10 && records.with_rows() == 6 &&
                       records.monitored() == std::vector<double>{0} &&
                       records.whole() == std::vector<double>{2, -1} && records.signal() == 0;
    check(holds, ErrorKind::kCheckFailed, "rank {} has other records", all.rank());
  });
}

}  // namespace
}  // namespace keel::train
