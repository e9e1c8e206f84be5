// What `keel compare --json` says.
#include <cmath>
#include <nlohmann/json.hpp>

#include "program/compare.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no numbers for what is not finite.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v)); }

Json error_json(const compare::Errors& e) {
  return {{"max_absolute", number(e.absolute)},
          {"max_relative", number(e.relative)},
          {"max_ulps", number(e.ulps)},
          {"nmse", number(e.nmse)},
          {"cosine", number(e.cosine)}};
}

}  // namespace

Json to_json(const compare::NodeReport& r, const std::string& command) {
  Json json{{"path", r.path},
            {"op", r.op},
            {"phase", r.phase},
            {"output", r.output},
            {"backend", r.backend},
            {"step", r.step},
            {"ok", r.judged ? Json(!r.diverges()) : Json(nullptr)}};
  if (!r.refusal.empty()) {
    json["refusal"] = r.refusal;
    return json;
  }
  json.update(error_json(r.errors));
  const compare::Element& w = r.errors.worst;
  json["of_bound"] = number(r.errors.of_bound);
  json["worst"] = {{"output", w.port},     {"element", w.index},
                   {"place", r.place},     {"expected", number(w.expected)},
                   {"got", number(w.got)}, {"bound", number(w.bound)}};
  for (const auto& [backend, value] : r.values) json["worst"]["values"][backend] = number(value);
  if (r.drift) json["drift"] = error_json(*r.drift);
  if (r.diverges()) json["reproduce"] = command;
  return json;
}

Json to_json(const compare::Comparison& c, const CompareArgs& args, const std::string& subject) {
  Json nodes = Json::array();
  for (const compare::NodeSummary& s : c.nodes) {
    Json node = to_json(s.worst, reproducing_command(args, subject, s.worst.path));
    node["steps"] = s.steps;
    node["steps_diverged"] = s.diverged;
    nodes.push_back(std::move(node));
  }
  Json json{{"subject", c.subject},
            {"agrees", c.agrees()},
            {"diverged", c.diverged()},
            {"refused", c.refused()}};
  json["first"] = c.first ? Json(c.first->path) : Json(nullptr);
  json["nearest"] = c.nearest;
  json["nodes"] = std::move(nodes);
  return json;
}

}  // namespace keel::cli
