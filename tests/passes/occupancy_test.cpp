// The index of taken bytes, checked against a list of rectangles that is searched from end to end.
#include "src/passes/occupancy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "src/core/rng.h"

namespace keel::test {
namespace {

struct Taken {
  Lifetime life;
  ByteRange range;
};

bool meet(Lifetime a, Lifetime b) { return a.first <= b.last && b.first <= a.last; }

std::int64_t lowest_free(const std::vector<Taken>& all, Lifetime life, std::int64_t bytes) {
  std::vector<std::int64_t> offsets{0};
  for (const Taken& t : all) offsets.push_back(t.range.end);
  std::ranges::sort(offsets);
  const auto is_free = [&](std::int64_t offset) {
    return std::ranges::none_of(all, [&](const Taken& t) {
      return meet(t.life, life) && t.range.begin < offset + bytes && offset < t.range.end;
    });
  };
  return *std::ranges::find_if(offsets, is_free);
}

TEST_CASE("occupancy: the lowest free bytes, for any number of times") {
  for (int times : {1, 2, 3, 7, 8, 9, 31, 64, 100}) {
    CAPTURE(times);
    const Philox random(std::uint64_t(times), stream_of("occupancy"));
    Occupancy occupancy(times);
    std::vector<Taken> all;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const int a = int(random.below(3 * i, std::uint32_t(times)));
      const int b = int(random.below(3 * i + 1, std::uint32_t(times)));
      const Lifetime life{std::min(a, b), std::max(a, b)};
      const std::int64_t bytes = 1 + random.below(3 * i + 2, 40);
      const std::int64_t offset = occupancy.lowest_free(life, bytes);
      REQUIRE(offset == lowest_free(all, life, bytes));
      all.push_back({life, {offset, offset + bytes}});
      occupancy.take(life, all.back().range);
    }
  }
}

TEST_CASE("occupancy: ranges that touch or overlap become one") {
  ByteSet set;
  const auto text = [&] {
    std::string s;
    for (const ByteRange& r : set.ranges()) {
      s += std::to_string(r.begin) + "-" + std::to_string(r.end) + " ";
    }
    return s;
  };
  set.add({10, 20});
  set.add({30, 40});
  set.add({0, 5});
  CHECK(text() == "0-5 10-20 30-40 ");
  set.add({20, 25});
  CHECK(text() == "0-5 10-25 30-40 ");
  set.add({12, 13});
  CHECK(text() == "0-5 10-25 30-40 ");
  set.add({24, 35});
  CHECK(text() == "0-5 10-40 ");
  set.add({5, 10});
  CHECK(text() == "0-40 ");
}

}  // namespace
}  // namespace keel::test
