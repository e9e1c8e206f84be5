// The synthetic textures.
#include "frontend/data/textures.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/support/checks.h"

namespace keel::data {
namespace {

TEST_CASE("textures: every ten rows have each class once, in a random order") {
  const Pictures all = make_textures(40, 1, "train");
  std::set<std::vector<double>> orders;
  for (std::int64_t first = 0; first < 40; first += 10) {
    std::vector<double> labels;
    for (std::int64_t i = 0; i < 10; ++i) labels.push_back(all.label.at(first + i));
    orders.insert(labels);
    std::ranges::sort(labels);
    for (int i = 0; i < 10; ++i) CHECK(labels[std::size_t(i)] == i);
  }
  CHECK(orders.size() == 4);
}

TEST_CASE("textures: a row is a function of seed, part and number") {
  const Pictures few = make_textures(12, 1, "train"), more = make_textures(20, 1, "train");
  const auto pixels = [](const Pictures& of, std::int64_t row) {
    const auto all = of.image.as<std::uint8_t>().subspan(std::size_t(row) * 3072, 3072);
    return std::vector<std::uint8_t>(all.begin(), all.end());
  };
  CHECK(pixels(few, 11) == pixels(more, 11));
  const Pictures last = make_textures(2, 1, "train", 10);
  CHECK(pixels(last, 1) == pixels(few, 11));
  CHECK(last.label.at(1) == few.label.at(11));
  CHECK(pixels(few, 11) != pixels(make_textures(12, 2, "train"), 11));
  CHECK(pixels(few, 11) != pixels(make_textures(12, 1, "test"), 11));
  std::set<std::uint8_t> values;
  for (const std::uint8_t value : pixels(few, 0)) values.insert(value);
  CHECK(values.size() > 60);
}

TEST_CASE("textures: refusals") {
  for (const std::int64_t n : {std::int64_t(0), std::int64_t(-1), std::int64_t(1) << 32}) {
    test::check_refused([&] { make_textures(n, 1, "x"); }, "[textures] rows: expected 1 to");
  }
}

}  // namespace
}  // namespace keel::data
