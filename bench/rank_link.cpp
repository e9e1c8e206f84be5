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

double sum_seconds(Communicator& ranks, double bytes, Reduction reduction) {
  using Clock = std::chrono::steady_clock;
  const std::size_t count = std::max(std::size_t(bytes) / sizeof(float), std::size_t(1));
  RankSum<float> sum(ranks, ranks.size(), reduction);
  std::vector<float> term;
  double least = 1e9;
  for (int round = 0; round < 40; ++round) {
    term.assign(count, 1.f);
    ranks.wait_for_all();
    const auto start = Clock::now();
    sum.add(term);
    sum.total();
    ranks.wait_for_all();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

std::vector<SumTime> time_sums(Communicator& ranks) {
  std::vector<SumTime> times;
  for (double bytes = 1 << 10; bytes <= 1 << 25; bytes *= 8) {
    times.push_back({bytes, sum_seconds(ranks, bytes, Reduction::kFixed),
                     sum_seconds(ranks, bytes, Reduction::kFast)});
  }
  return times;
}

// Minimizes the squares of (a + b S - t) / t.
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
  const double b = (w * xy - x * y) / (w * xx - x * x), a = (y - b * x) / w;
  const double others = ranks - 1;
  return {.latency = a / (2 * others), .rate = 2 * others / ranks / b};
}

}  // namespace keel::bench
