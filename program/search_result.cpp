#include "program/search_result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/train/run_result.h"
#include "program/common.h"
#include "src/core/error.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLoss = "loss";

// The metrics of which a way is better, and the loss, which every evaluation has.
std::vector<task::MetricInfo> metrics_to_compare(const train::Config& config) {
  std::vector<task::MetricInfo> infos;
  for (const task::MetricInfo& info : config.task().metrics()) {
    if (info.has_direction) infos.push_back(info);
  }
  if (std::ranges::find(infos, kLoss, &task::MetricInfo::name) == infos.end()) {
    infos.push_back({.name = kLoss, .unit = ""});
  }
  return infos;
}

task::MetricInfo metric_called(const std::string& name, const train::Config& config) {
  const std::vector<task::MetricInfo> infos = metrics_to_compare(config);
  const auto found = std::ranges::find(infos, name, &task::MetricInfo::name);
  if (found != infos.end()) return *found;
  std::vector<std::string> names;
  for (const task::MetricInfo& info : infos) names.push_back(info.name);
  fail(ErrorKind::kUsage, "--by: expected a metric of {}: {}; got '{}'", config.task().name(),
       fmt::join(names, ", "), name);
}

bool is_better(const task::MetricInfo& metric, double value, double than) {
  return metric.higher_is_better ? value > than : value < than;
}

// The best of the validations that fell due, or that of the last weights if there was no other.
std::optional<SearchValue> best_value(const task::MetricInfo& metric,
                                      const std::filesystem::path& folder) {
  const report::Run run = report::read_run(folder);
  std::optional<SearchValue> best;
  if (const report::Curve* curve = report::find_curve(run, "valid", metric.name)) {
    for (std::size_t i = 0; i < curve->value.size(); ++i) {
      const double value = curve->value[i];
      if (!std::isfinite(value) || (best && !is_better(metric, value, best->value))) continue;
      best = {value, curve->step[i]};
    }
    return best;
  }
  const Json result = train::result_of(train::RunFolder{folder});
  const Json value = result.value("valid", Json::object()).value(metric.name, Json());
  if (value.is_number()) best = {value.get<double>(), run.step};
  return best;
}

bool has_diverged(const Trial& trial) {
  return trial.state == TrialState::kFailed && trial.mark == "diverged";
}

std::string state_at(const SearchResult& result, const Trial& trial, std::size_t place) {
  if (result.chosen == place) return "chosen";
  if (trial.state == TrialState::kFinished && !result.values[place]) return "no finite value";
  return state_text(trial) + (trial.reason.empty() ? "" : ": " + trial.reason);
}

std::string with_unit(const task::MetricInfo& metric) {
  return metric.unit.empty() ? metric.name : metric.name + " " + metric.unit;
}

std::string value_text(const std::optional<SearchValue>& value) {
  return value ? fmt::format("{:.6g}", value->value) : "";
}

// The command that trains a point in a folder of its task's name.
std::string command_of(const GridPoint& point) {
  Trial trial;
  set_commands(trial, point.run, "");
  return shell_command(trial.start);
}

Json settings_json(const SearchResult& result, const GridPoint& point) {
  Json settings = Json::object();
  for (std::size_t i = 0; i < result.keys.size(); ++i) settings[result.keys[i]] = point.values[i];
  return settings;
}

Json point_json(const SearchResult& result, const GridPoint& point, const Trial& trial,
                std::size_t place) {
  const std::optional<SearchValue>& value = result.values[place];
  Json json{{"settings", settings_json(result, point)},
            {"state", trial.state == TrialState::kFailed ? trial.mark : state_text(trial)}};
  json["value"] = value ? Json(value->value) : Json();
  json["step"] = value ? Json(value->step) : Json();
  if (!trial.reason.empty()) json["message"] = trial.reason;
  json["folder"] = trial.folder.string();
  json["command"] = shell_command(trial.start);
  return json;
}

}  // namespace

task::MetricInfo search_metric(const std::vector<GridPoint>& points, const std::string& by) {
  const train::Config& first = points.front().config;
  const std::string name = by.empty() ? metrics_to_compare(first).front().name : by;
  const task::MetricInfo metric = metric_called(name, first);
  for (const GridPoint& point : points) metric_called(name, point.config);
  return metric;
}

SearchResult search_result(const std::vector<SearchKey>& keys, const task::MetricInfo& metric,
                           const std::vector<Trial>& trials) {
  SearchResult result;
  result.metric = metric;
  for (const SearchKey& search : keys) result.keys.push_back(search.key);
  std::optional<std::size_t> best;
  bool all_ended = true;
  for (const Trial& trial : trials) {
    const bool finished = trial.state == TrialState::kFinished;
    result.values.push_back(finished ? best_value(metric, trial.folder) : std::nullopt);
    result.has_failed |= trial.state == TrialState::kFailed && !has_diverged(trial);
    all_ended &= finished || has_diverged(trial);
    const auto& value = result.values.back();
    if (value && (!best || is_better(metric, value->value, result.values[*best]->value))) {
      best = result.values.size() - 1;
    }
  }
  if (all_ended) result.chosen = best;
  result.all_diverged = all_ended && !best;
  return result;
}

std::string search_text(const SearchResult& result, const std::vector<GridPoint>& points,
                        const std::vector<Trial>& trials, const std::string& recipe) {
  std::vector<std::vector<std::string>> rows{result.keys};
  rows.front().insert(rows.front().end(), {with_unit(result.metric), "step", "training"});
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& value = result.values[i];
    std::vector<std::string>& row = rows.emplace_back(points[i].values);
    row.push_back(value_text(value));
    row.push_back(value ? fmt::format("{}", value->step) : "");
    row.push_back(state_at(result, trials[i], i));
  }
  std::string text =
      fmt::format("best {} on the validation rows; {} is better\n\n{}", result.metric.name,
                  result.metric.higher_is_better ? "higher" : "lower", table_text(rows));
  if (!result.chosen) return text;
  const Trial& trial = trials[*result.chosen];
  return text + fmt::format("\nchosen: {}\nrun: {}\nrecipe: {}\n{}\n", points[*result.chosen].name,
                            shown(trial.folder.string()), shown(recipe),
                            command_of(points[*result.chosen]));
}

Json search_json(const SearchResult& result, const std::vector<GridPoint>& points,
                 const std::vector<Trial>& trials, const std::string& recipe) {
  Json json{{"metric",
             {{"name", result.metric.name},
              {"unit", result.metric.unit},
              {"higher_is_better", result.metric.higher_is_better}}},
            {"keys", result.keys},
            {"points", Json::array()}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    json["points"].push_back(point_json(result, points[i], trials[i], i));
  }
  json["chosen"] = Json();
  if (result.chosen) {
    json["chosen"] =
        point_json(result, points[*result.chosen], trials[*result.chosen], *result.chosen);
    json["chosen"]["command"] = command_of(points[*result.chosen]);
    json["chosen"]["recipe"] = recipe;
  }
  return json;
}

}  // namespace keel::cli
