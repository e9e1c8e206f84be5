// What the sum over ranks costs by itself: its time by size, and what a simple model makes of it
// for more of them. Start it by mpirun; rank 0 prints.
//
// With N ranks and S bytes a rank sends and receives (N - 1) / N * S twice, in N - 1 messages each
// time: t = 2 (N - 1) (latency + S / N / bandwidth). Both are fitted by least squares of the
// relative error.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "backends/ranks.h"
#include "src/runtime/rank_sum.h"

namespace keel {
namespace {

using Clock = std::chrono::steady_clock;

struct Point {
  double bytes = 0, seconds = 0;
};

// The least of many rounds: on a busy machine the others measure its scheduler.
double least_seconds(Communicator& ranks, std::size_t count, Reduction reduction) {
  RankSum<float> sum(ranks, ranks.size(), reduction);
  std::vector<float> term(count, 1.f);
  double least = 1e9;
  for (int round = 0; round < 60; ++round) {
    term.resize(count, 1.f);
    ranks.wait_for_all();
    const auto start = Clock::now();
    sum.add(term);
    sum.total();
    ranks.wait_for_all();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

// The fit of t = a + b S, which minimizes the squares of (fit - t) / t.
std::pair<double, double> fitted(const std::vector<Point>& points) {
  double w = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (const Point& p : points) {
    const double weight = 1 / (p.seconds * p.seconds);
    w += weight;
    x += weight * p.bytes;
    xx += weight * p.bytes * p.bytes;
    y += weight * p.seconds;
    xy += weight * p.bytes * p.seconds;
  }
  const double b = (w * xy - x * y) / (w * xx - x * x);
  return {(y - b * x) / w, b};
}

void measure(Communicator& ranks) {
  std::vector<Point> points;
  for (std::size_t bytes = 1 << 10; bytes <= std::size_t{32} << 20; bytes *= 8) {
    const std::size_t count = bytes / sizeof(float);
    const double fixed = least_seconds(ranks, count, Reduction::kFixed);
    const double fast = least_seconds(ranks, count, Reduction::kFast);
    points.push_back({double(bytes), fixed});
    if (ranks.rank() > 0) continue;
    fmt::print("{:>10} bytes: fixed {:9.1f} us, fast {:9.1f} us\n", bytes, 1e6 * fixed, 1e6 * fast);
  }
  if (ranks.rank() > 0 || ranks.size() == 1) return;
  const auto [a, b] = fitted(points);
  const double others = ranks.size() - 1;
  const double latency = a / (2 * others), rate = 2 * others / ranks.size() / b;
  fmt::print("latency {:.1f} us a message, {:.2f} GB/s\n", 1e6 * latency, rate / 1e9);
  for (const double mega : {1.0, 10.0, 100.0}) {
    for (const double hosts : {8.0, 64.0, 512.0}) {
      const double seconds = 2 * (hosts - 1) * (latency + 1e6 * mega / hosts / rate);
      fmt::print("{:>5} MB on {:>3} ranks: {:8.1f} ms\n", mega, hosts, 1e3 * seconds);
    }
  }
}

}  // namespace
}  // namespace keel

int main() {
  const auto ranks = keel::start_ranks([](const std::string& line) { fmt::print("{}\n", line); });
  keel::measure(*ranks);
}
