// Which number of a norm's statistics ranks norms as their test results do.
#include "studies/statistics_ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace keel::study {
namespace {

using List = std::vector<double>;

TEST_CASE("statistics ranks: correlations by hand, with ties, and of all orders") {
  const List four{10, 20, 30, 40};
  CHECK(rank_correlation(four, List{1, 2, 3, 1e9}) == doctest::Approx(1));
  CHECK(rank_correlation(four, List{4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(rank_correlation(four, List{1, 3, 2, 4}) == doctest::Approx(0.8));
  // Ranks 1, 2.5, 2.5 and 4: a covariance of 4.5 and variances of 5 and 4.5.
  CHECK(rank_correlation(four, List{1, 2, 2, 3}) == doctest::Approx(4.5 / std::sqrt(22.5)));
  CHECK(std::isnan(rank_correlation(four, List{2, 2, 2, 2})));
  CHECK(order_chance(four, List{1, 2, 3, 4}).value() == doctest::Approx(2 / 24.0));
  CHECK(order_chance(four, List{1, 3, 2, 4}).value() == doctest::Approx(8 / 24.0));
  CHECK(!order_chance(four, List{2, 2, 2, 2}));
  CHECK(!order_chance(List(10, 1), List(10, 2)));
}

StatisticsRun run_of(const std::string& label, const std::string& seed, double tid,
                     std::optional<double> cost) {
  StatisticsRun run{
      .task = "translation", .norm = "batchnorm", .label = label, .site = "", .seed = seed};
  for (int i = 0; i < 3; ++i) run.lines.push_back({.step = i, .found = {.tid_mean = tid}});
  run.cost = cost;
  return run;
}

TEST_CASE("statistics ranks: means over seeds of tested norms") {
  std::vector<StatisticsRun> runs{run_of("a", "1", 0.1, -40), run_of("a", "2", 0.3, -42),
                                  run_of("b", "1", 0.4, -30), run_of("c", "1", 0.5, {})};
  CHECK(ranks_table(runs).rows.size() == 1);
  runs.push_back(run_of("c", "2", 0.6, -20));
  const Table table = ranks_table(runs);
  const auto row = std::ranges::find(table.rows, "tid_mean", [](const auto& r) { return r[1]; });
  REQUIRE(row != table.rows.end());
  CHECK(*row == std::vector<std::string>{"translation", "tid_mean", "3", "4", "1.00", "0.333"});
}

}  // namespace
}  // namespace keel::study
