// keel inspect
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "frontend/io/safetensors.h"
#include "frontend/train/step_graph.h"
#include "program/common.h"
#include "src/core/shown.h"
#include "src/graph/print.h"
#include "src/passes/memory_plan.h"
#include "src/runtime/program.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string location_text(const Location& location) {
  switch (location.kind) {
    case Location::kAbsent:
      return "absent";
    case Location::kArena:
      return fmt::format("arena+{}", location.offset);
    case Location::kLeaf:
      return fmt::format("leaf %{}", location.leaf);
    case Location::kConstant:
      return "constant";
  }
  return "?";
}

std::vector<std::string> places_of(const MemoryPlan& plan, int node) {
  std::vector<std::string> places;
  for (const Location& location : plan.locations.of(node)) {
    places.push_back(location_text(location));
  }
  return places;
}

std::string plan_text(const Graph& graph) {
  const MemoryPlan plan = plan_memory(graph);
  std::string text = fmt::format(
      "arena {} bytes; most alive at once {}; without sharing {}; {} outputs in place; {} updates "
      "by copy\n",
      plan.arena_bytes, plan.live_bytes, plan.total_bytes, plan.in_place, plan.copies.size());
  for (int i = 0; i < graph.size(); ++i) {
    text += fmt::format("%{} {}: {}\n", i, graph.node(i).name, fmt::join(places_of(plan, i), ", "));
  }
  return text;
}

// Node and port; null for an input that is absent.
Json graph_json(Value v) { return v.valid() ? Json::array({v.node, v.port}) : Json(); }

Json graph_json(const Graph& graph) {
  Json nodes = Json::array(), outputs = Json::object(), updates = Json::object();
  const MemoryPlan plan = plan_memory(graph);
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    Json inputs = Json::array(), types = Json::array();
    for (Value v : node.inputs) inputs.push_back(graph_json(v));
    for (const TensorType& type : node.outputs) types.push_back(type.text());
    nodes.push_back({{"name", node.name},
                     {"op", node.op ? Json(node.op->name) : Json()},
                     {"inputs", inputs},
                     {"types", types},
                     {"places", places_of(plan, i)},
                     {"text", print_node(graph, i)}});
  }
  for (const NamedValue& output : graph.outputs()) outputs[output.name] = graph_json(output.value);
  for (const Update& u : graph.updates()) updates[graph.node(u.leaf).name] = graph_json(u.next);
  return {{"arena_bytes", plan.arena_bytes},
          {"live_bytes", plan.live_bytes},
          {"total_bytes", plan.total_bytes},
          {"nodes", nodes},
          {"outputs", outputs},
          {"updates", updates}};
}

}  // namespace

int run_inspect_graph(const GraphArgs& args) {
  const train::Job job = make_job(args.run);
  expect_settled(job);
  Graph graph = args.mode == "step"
                    ? train::build_step(job)
                    : train::build_evaluate(job, job.network().sizes(job.train().batch));
  if (args.stage != "before") graph = optimized_for(*make_backend(args.run), graph);
  if (args.run.json) {
    print_json(graph_json(graph));
  } else {
    print(args.stage == "plan" ? plan_text(graph) : print(graph));
  }
  return 0;
}

int run_inspect_checkpoint(const FileArgs& args) {
  const std::filesystem::path path = checkpoint_path(args.path);
  const io::TensorFileInfo info = io::read_safetensors_info(path);
  io::verify_safetensors(path);
  if (args.json) {
    Json tensors = Json::array();
    for (const auto& [name, type] : info.tensors) {
      tensors.push_back({{"tensor", name}, {"type", type.text()}, {"bytes", type.bytes()}});
    }
    print_json(
        {{"tensors", tensors}, {"checksums", info.has_checksums}, {"metadata", info.metadata}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"tensor", "type", "bytes"}};
  for (const auto& [name, type] : info.tensors) {
    rows.push_back({name, type.text(), fmt::format("{}", type.bytes())});
  }
  std::string text = table_text(rows);
  text += fmt::format("checksums: {}\n", info.has_checksums ? "yes, and right" : "no");
  for (const auto& [key, value] : info.metadata) {
    text += fmt::format("{}: {}\n", shown(shortened(key, kMostShownBytes)),
                        shown(shortened(value, kMostShownBytes)));
  }
  print(text);
  return 0;
}

}  // namespace keel::cli
