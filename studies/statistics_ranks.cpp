#include "studies/statistics_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "studies/summary.h"

namespace keel::study {
namespace {

constexpr std::size_t kMostOrdered = 9;  // 362,880 orders
constexpr std::size_t kFewestNorms = 3;

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto less = std::ranges::count_if(values, [&](double v) { return v < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(double(less) + double(equal + 1) / 2);
  }
  return ranks;
}

// Pearson's correlation.
double correlation(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean_of(a), mean_b = mean_of(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double da = a[i] - mean_a, db = b[i] - mean_b;
    ab += da * db;
    aa += da * da;
    bb += db * db;
  }
  return ab / std::sqrt(aa * bb);
}

// The values of a norm's trainings, a seed each.
struct NormNumbers {
  std::vector<double> numbers, costs;
};

std::map<std::string, NormNumbers> numbers_by_norm(const std::vector<StatisticsRun>& runs,
                                                   const std::string& task,
                                                   const StatisticsName& what) {
  std::map<std::string, NormNumbers> norms;
  for (const StatisticsRun& run : runs) {
    if (run.task != task || !run.cost || !what.is_there(run.norm)) continue;
    norms[run.label].numbers.push_back(quantile(settled(run, what.field), 0.5));
    norms[run.label].costs.push_back(*run.cost);
  }
  return norms;
}

void add_row(const std::string& task, const StatisticsName& what,
             const std::map<std::string, NormNumbers>& norms, Table& table) {
  std::vector<double> numbers, costs;
  std::size_t trainings = 0;
  for (const auto& [label, of] : norms) {
    numbers.push_back(mean_of(of.numbers));
    costs.push_back(mean_of(of.costs));
    trainings += of.costs.size();
  }
  const std::optional<double> chance = order_chance(numbers, costs);
  table.rows.push_back({task, what.name, fmt::format("{}", norms.size()),
                        fmt::format("{}", trainings),
                        fmt::format("{:.2f}", rank_correlation(numbers, costs)),
                        chance ? fmt::format("{:.3f}", *chance) : ""});
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  return correlation(ranks_of(a), ranks_of(b));
}

std::optional<double> order_chance(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> ranks_a = ranks_of(a), ranks_b = ranks_of(b);
  const double found = std::abs(correlation(ranks_a, ranks_b));
  if (a.size() > kMostOrdered || std::isnan(found)) return {};
  std::vector<std::size_t> places(a.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::int64_t orders = 0, as_far = 0;
  do {
    std::vector<double> ordered;
    for (const std::size_t place : places) ordered.push_back(ranks_b[place]);
    constexpr double kRounding = 1e-12;
    as_far += std::abs(correlation(ranks_a, ordered)) >= found - kRounding;
    ++orders;
  } while (std::ranges::next_permutation(places).found);
  return double(as_far) / double(orders);
}

Table ranks_table(const std::vector<StatisticsRun>& runs) {
  Table table{"which number ranks the norms as their test results do (Spearman)",
              {{"task", "what", "norms", "trainings", "correlation with the cost", "p"}}};
  std::set<std::string> tasks;
  for (const StatisticsRun& run : runs) tasks.insert(run.task);
  for (const std::string& task : tasks) {
    for (const StatisticsName& what : kStatisticsNames) {
      const auto norms = numbers_by_norm(runs, task, what);
      if (norms.size() >= kFewestNorms) add_row(task, what, norms, table);
    }
  }
  return table;
}

}  // namespace keel::study
