// A report as JSON.
#include <nlohmann/json.hpp>

#include "frontend/report/report.h"

namespace keel::report {
namespace {

using Json = nlohmann::ordered_json;

Json spread_json(const Spread& spread) {
  if (spread.n == 0) return {{"n", 0}};
  Json json{{"mean", spread.mean}, {"deviation", nullptr}, {"n", spread.n}};
  if (spread.deviation) json["deviation"] = *spread.deviation;
  return json;
}

Json run_json(const Run& run) {
  Json json{{"run", run.name}, {"seed", seed_of(run)}, {"outcome", name_of(run.outcome)}};
  if (!run.message.empty()) json["message"] = run.message;
  json["steps"] = run.step;
  if (const auto epochs = epochs_of(run)) json["epochs"] = *epochs;
  if (run.seconds) json["seconds"] = *run.seconds;
  return json;
}

Json group_json(const SectionReport& report, const Group& group) {
  Json settings = Json::object(), results = Json::object(), runs = Json::array();
  for (std::size_t i = 0; i < group.settings.size(); ++i) {
    settings[report.section.differing[i]] = group.settings[i];
  }
  for (const Figure& figure : report.figures) {
    results[figure.key()] = spread_json(spread_in(group, figure));
  }
  for (const Run* run : group.runs) {
    runs.push_back(run_json(*run));
    for (const Figure& figure : report.figures) {
      if (const auto n = counted_in(*run, figure)) runs.back()["counted"][figure.key()] = *n;
    }
  }
  const Costs costs = costs_of(group);
  return {{"group", group.label},
          {"settings", settings},
          {"results", results},
          {"epochs", spread_json(costs.epochs)},
          {"seconds", spread_json(costs.seconds)},
          {"items_per_second", spread_json(costs.items_per_second)},
          {"runs", runs}};
}

Json catch_up_json(const CatchUp& c) {
  Json json{{"metric", c.metric}, {"group", c.group},         {"baseline", c.baseline},
            {"goal", c.goal},     {"goal_step", c.goal_step}, {"step", nullptr},
            {"share", nullptr},   {"best", c.best},           {"best_step", c.best_step}};
  if (c.step) json["step"] = *c.step;
  if (const auto share = c.share()) json["share"] = *share;
  return json;
}

}  // namespace

Json report_json(std::span<const SectionReport> reports) {
  Json sections = Json::array();
  for (const SectionReport& report : reports) {
    Json groups = Json::array(), catch_ups = Json::array();
    for (const Group& group : report.section.groups) groups.push_back(group_json(report, group));
    for (const CatchUp& c : report.catch_ups) catch_ups.push_back(catch_up_json(c));
    sections.push_back({{"model", report.section.model},
                        {"differing", report.section.differing},
                        {"groups", groups},
                        {"catch_ups", catch_ups}});
  }
  return sections;
}

}  // namespace keel::report
