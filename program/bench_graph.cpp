// keel bench graph
#include <nlohmann/json.hpp>

#include "bench/graph_scale.h"
#include "program/common.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Stage {
  const char* name;
  double bench::GraphScale::*seconds;
};

constexpr Stage kStages[] = {{"build", &bench::GraphScale::build},
                             {"gradient", &bench::GraphScale::gradient},
                             {"passes", &bench::GraphScale::passes},
                             {"plan", &bench::GraphScale::plan},
                             {"bind", &bench::GraphScale::bind}};

Json row_json(const bench::GraphScale& scale) {
  Json json{{"nodes", scale.nodes}, {"kernels", scale.kernels}};
  for (const Stage& stage : kStages) json[stage.name] = scale.*stage.seconds;
  json["total"] = scale.total();
  return json;
}

std::vector<std::string> row_text(const bench::GraphScale& scale) {
  std::vector<std::string> row{fmt::format("{}", scale.nodes), fmt::format("{}", scale.kernels)};
  for (const Stage& stage : kStages) {
    row.push_back(fmt::format("{:.1f}", scale.*stage.seconds * 1e3));
  }
  row.push_back(fmt::format("{:.1f}", scale.total() * 1e3));
  row.push_back(fmt::format("{:.1f}", scale.total() * 1e6 / scale.nodes));
  return row;
}

}  // namespace

int run_bench_graph(const GraphBenchArgs& args) {
  std::vector<std::vector<std::string>> rows{{"nodes", "kernels"}};
  for (const Stage& stage : kStages) rows[0].push_back(fmt::format("{} ms", stage.name));
  rows[0].insert(rows[0].end(), {"total ms", "us a node"});
  Json json = Json::array();
  for (const int nodes : args.nodes) {
    const bench::GraphScale scale = bench::bench_graph(nodes, args.rounds);
    rows.push_back(row_text(scale));
    json.push_back(row_json(scale));
  }
  args.json ? print_json({{"rounds", args.rounds}, {"graphs", json}}) : print(table_text(rows));
  return 0;
}

}  // namespace keel::cli
