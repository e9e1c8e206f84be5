// The output of `keel compare --json`.
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

// Whether a node is ok; null for a node that was not compared.
Json ok_of(const compare::NodeReport& r) {
  const compare::Verdict verdict = r.verdict();
  const bool is_known = verdict == compare::Verdict::kOk || verdict == compare::Verdict::kDiverges;
  return is_known ? Json(verdict == compare::Verdict::kOk) : Json(nullptr);
}

}  // namespace

Json agreement(bool agrees, bool complete) {
  return agrees && !complete ? Json(nullptr) : Json(agrees);
}

Json to_json(const compare::NodeReport& r, const std::string& command) {
  Json json{
      {"path", r.path},       {"op", r.op},
      {"phase", r.phase},     {"output", r.output},
      {"backend", r.backend}, {"step", r.step},
      {"ok", ok_of(r)},       {"verdict", choice_words(r.verdict())[std::size_t(r.verdict())]}};
  if (!r.refusal.empty()) {
    json["refusal"] = r.refusal;
    return json;
  }
  if (!r.reason.empty()) json["reason"] = r.reason;
  json["standard"] = r.standard;
  json.update(error_json(r.errors));
  const compare::Element& w = r.errors.worst;
  json["of_bound"] = number(r.errors.of_bound);
  json["of_usual"] = number(r.errors.of_usual);
  json["scale"] = number(r.errors.scale);
  json["sensitivity"] = number(r.errors.sensitivity);
  json["elements_uncompared"] = r.errors.uncompared;
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
            {"agrees", agreement(c.agrees(), c.complete())},
            {"verdict", compare::verdict_text({&c, 1})},
            {"diverged", c.diverged()},
            {"suspect", c.count(compare::Verdict::kSuspect)},
            {"uncompared", c.count(compare::Verdict::kUncompared)},
            {"insensitive", c.count(compare::Verdict::kInsensitive)},
            {"refused", c.refused()}};
  json["first"] = c.first ? Json(c.first->path) : Json(nullptr);
  json["nearest"] = c.nearest;
  json["nodes"] = std::move(nodes);
  return json;
}

}  // namespace keel::cli
