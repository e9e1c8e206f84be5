// The result of a search: the validation values at the points of its grid, and the best of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "frontend/task/metric.h"
#include "program/search_grid.h"
#include "program/trial.h"

namespace keel::cli {

// The metric by which the points are compared: the named one, "loss", or the task's first if the
// name is empty. Throws Error{kUsage}, naming those that there are, if a point's task does not have
// it or neither way of it is better.
task::MetricInfo search_metric(const std::vector<GridPoint>& points, const std::string& by);

// The best value that a training measured on the validation rows, and after which update.
struct SearchValue {
  double value = 0, step = 0;
};

struct SearchResult {
  std::vector<std::string> keys;
  task::MetricInfo metric;
  std::vector<std::optional<SearchValue>> values;  // by point; none of one that has not finished
  std::optional<std::size_t> chosen;               // once every training has ended
  bool has_failed = false;    // whether one ended otherwise than finished or diverged
  bool all_diverged = false;  // whether no point has a value for that reason
};

// Reads the values of the finished trainings, one for each point. Of equal values the first is the
// best.
SearchResult search_result(const std::vector<SearchKey>& keys, const task::MetricInfo& metric,
                           const std::vector<Trial>& trials);

// The table for people, and the same as JSON. `recipe` is the file of the chosen recipe.
std::string search_text(const SearchResult& result, const std::vector<GridPoint>& points,
                        const std::vector<Trial>& trials, const std::string& recipe);
nlohmann::ordered_json search_json(const SearchResult& result, const std::vector<GridPoint>& points,
                                   const std::vector<Trial>& trials, const std::string& recipe);

}  // namespace keel::cli
