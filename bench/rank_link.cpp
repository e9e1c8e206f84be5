#include "bench/rank_link.h"

#include <algorithm>
#include <chrono>

namespace keel::bench {

double RankLink::sum_seconds(double bytes, double ranks) const {
  return 2 * (ranks - 1) * (latency + bytes / ranks / rate);
}

double RankLink::gather_seconds(double bytes_each, double ranks) const {
  return (ranks - 1) * (latency + bytes_each / rate);
}

RoundTimes sum_seconds(Communicator& ranks, double bytes, std::int64_t shards,
                       Reduction reduction) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 40;
  const std::size_t count = std::max(std::size_t(bytes) / sizeof(float), std::size_t(1));
  const ShardRange own = shards_of_rank(shards, ranks.rank(), ranks.size());
  RankSum<float> sum(ranks, shards, reduction);
  std::vector<float> term;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    for (std::int64_t shard = own.first; shard < own.end; ++shard) {
      term.assign(count, 1.f);
      sum.add(term);
    }
    ranks.wait_for_all();
    const auto start = Clock::now();
    sum.total();
    ranks.wait_for_all();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  return {.least = seconds.front(), .median = seconds[kRounds / 2]};
}

std::vector<SumTime> time_sums(Communicator& ranks) {
  const auto least = [&](double bytes, Reduction reduction) {
    return sum_seconds(ranks, bytes, ranks.size(), reduction).least;
  };
  std::vector<SumTime> times;
  for (double bytes = 1 << 10; bytes <= 1 << 25; bytes *= 8) {
    times.push_back({bytes, least(bytes, Reduction::kFixed), least(bytes, Reduction::kFast)});
  }
  return times;
}

// Minimizes the squares of (a + b S - t) / t, with a = 0 where the least is at a negative a.
RankLink fitted_link(const std::vector<SumTime>& sums, int ranks) {
  double w = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (const SumTime& sum : sums) {
    const double weight = 1 / (sum.fixed * sum.fixed);
    w += weight;
    x += weight * sum.bytes;
    xx += weight * sum.bytes * sum.bytes;
    y += weight * sum.fixed;
    xy += weight * sum.bytes * sum.fixed;
  }
  double b = (w * xy - x * y) / (w * xx - x * x), a = (y - b * x) / w;
  if (a < 0) {
    a = 0;
    b = xy / xx;
  }
  const double others = ranks - 1;
  return {.latency = a / (2 * others), .rate = 2 * others / ranks / b};
}

}  // namespace keel::bench
