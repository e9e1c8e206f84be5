// Lines, medians, ranges and deviations, checked against numbers worked out by hand.
#include "frontend/report/curves.h"

#include <cmath>

#include "frontend/report/spread.h"
#include "src/core/error.h"
#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

using Doubles = std::vector<double>;

TEST_CASE("report spread: mean, deviation over n - 1, median") {
  const Doubles values{2, 4, 9};
  const Spread spread = spread_of(values);
  CHECK(spread.mean == 5);
  CHECK(spread.deviation == std::sqrt(13.0));  // (9 + 1 + 16) / 2
  CHECK(spread.n == 3);
  CHECK(spread_of(Doubles{7}).mean == 7);
  CHECK_FALSE(spread_of(Doubles{7}).deviation.has_value());
  CHECK(spread_of({}).n == 0);
  CHECK(median_of({9, 2, 4}) == 4);
  CHECK(median_of({1, 8, 2, 4}) == 3);
  CHECK_THROWS_AS(median_of({}), Error);
}

TEST_CASE("report spread: as text") {
  CHECK(text(spread_of(Doubles{1, 2}), 2) == "1.50 +- 0.71");
  CHECK(text(spread_of(Doubles{1, 2}), 1, "\u00B1") == "1.5 \u00B1 0.7");
  CHECK(text(spread_of(Doubles{1.25}), 2) == "1.25");
  CHECK(text({}, 2) == "-");
  CHECK(digits_for(12, "%") == 2);
  CHECK(digits_for(0.0123, "") == 5);
  CHECK(digits_for(123, "") == 1);
  CHECK(digits_for(123456, "") == 0);
  CHECK(digits_for(0, "") == 3);
}

TEST_CASE("report curves: a line along epochs or steps, without what is not finite") {
  const Run run = made_run("a", {}, {3, NAN, 1});
  const Curve& curve = *find_curve(run, "valid", "error");
  CHECK(line_of(run, curve, Axis::kStep).x == Doubles{10, 30});
  CHECK(line_of(run, curve, Axis::kEpoch).x == Doubles{1, 3});
  CHECK(line_of(run, curve, Axis::kEpoch).y == Doubles{3, 1});
  Run beginner = run;
  beginner.epochs.clear();
  CHECK(line_of(beginner, curve, Axis::kEpoch).x.empty());
}

TEST_CASE("report curves: of one step written twice the last counts") {
  const Run run = made_run("a", {}, {1});
  const Line line = line_of(run, {"valid", "error", {10, 10, 20}, {4, 3, 2}}, Axis::kStep);
  CHECK(line.x == Doubles{10, 20});
  CHECK(line.y == Doubles{3, 2});
}

TEST_CASE("report curves: very many points become means of neighbours") {
  const Run run = made_run("a", {}, {1});
  const Curve curve{"step", "loss", {1, 2, 3, 4, 5}, {10, 20, 30, 40, 60}};
  const Line line = line_of(run, curve, Axis::kStep, 3);
  CHECK(line.x == Doubles{1.5, 3.5, 5});
  CHECK(line.y == Doubles{15, 35, 60});
  CHECK(line_of(run, curve, Axis::kStep, 5).x.size() == 5);
}

TEST_CASE("report curves: median and range of those that got so far") {
  const std::vector<Line> lines{{{1, 2, 3}, {10, 20, 30}}, {{1, 3}, {40, 20}}, {{1, 2}, {12, 90}}};
  const Band band = band_of(lines);
  CHECK(band.x == Doubles{1, 2, 3});
  // At 2 the second is half-way between 40 and 20; at 3 the third is not there any more.
  CHECK(band.median == Doubles{12, 30, 25});
  CHECK(band.low == Doubles{10, 20, 20});
  CHECK(band.high == Doubles{40, 90, 30});
  CHECK(band_of({}).x.empty());
}

}  // namespace
}  // namespace keel::report
