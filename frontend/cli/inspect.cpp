// keel inspect
#include <filesystem>

#include "frontend/cli/common.h"
#include "frontend/data/file.h"
#include "frontend/data/idx.h"
#include "frontend/train/safetensors.h"
#include "frontend/train/step_graph.h"
#include "src/graph/print.h"
#include "src/passes/memory_plan.h"
#include "src/passes/pipeline.h"

namespace keel::cli {
namespace {

struct GraphArgs {
  RunArgs run;
  std::string mode = "step", stage = "after";
};

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

std::string plan_text(const Graph& graph) {
  const MemoryPlan plan = plan_memory(graph);
  std::string text = fmt::format(
      "arena {} bytes; most alive at once {}; without sharing {}; {} outputs in place; {} updates "
      "by copy\n",
      plan.arena_bytes, plan.live_bytes, plan.total_bytes, plan.in_place, plan.copies.size());
  for (int i = 0; i < graph.size(); ++i) {
    std::vector<std::string> places;
    for (const Location& location : plan.locations[std::size_t(i)]) {
      places.push_back(location_text(location));
    }
    text += fmt::format("%{} {}: {}\n", i, graph.node(i).name, fmt::join(places, ", "));
  }
  return text;
}

int run_graph(const GraphArgs& args) {
  const train::Config config = make_config(args.run);
  const Graph graph = args.mode == "step" ? train::build_step(config)
                                          : train::build_evaluate(config, config.train().batch);
  if (args.stage == "before") {
    print(print(graph));
  } else {
    const Graph optimised = run_passes(graph);
    print(args.stage == "plan" ? plan_text(optimised) : print(optimised));
  }
  return 0;
}

int run_checkpoint(const std::string& path) {
  const train::TensorFileInfo info = train::read_safetensors_info(path);
  std::vector<std::vector<std::string>> rows{{"tensor", "type", "bytes"}};
  for (const auto& [name, type] : info.tensors) {
    rows.push_back({name, type.text(), fmt::format("{}", type.bytes())});
  }
  std::string text = table_text(rows);
  text += fmt::format("checksums: {}\n", info.has_checksums ? "yes" : "no");
  for (const auto& [key, value] : info.metadata) text += fmt::format("{}: {}\n", key, value);
  print(text);
  return 0;
}

// An IDX file of images or labels, told apart by its magic number; a folder as MNIST.
int run_data(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    const auto splits = make_model("mnist_mlp")->load({.source = path});
    print(splits.train.description() + "\n" + splits.valid.description() + "\n" +
          splits.test.description() + "\n");
    return 0;
  }
  const std::string bytes = data::read_file(path, std::int64_t{1} << 28);
  const bool images = bytes.size() > 3 && bytes[3] == 3;
  const Tensor tensor = images ? data::read_idx_images(path) : data::read_idx_labels(path);
  print(fmt::format("{}: {} {}\n", path, images ? "images" : "labels", tensor.type().text()));
  return 0;
}

}  // namespace

void add_inspect(Command command) {
  CLI::App* app = command.app.add_subcommand("inspect", "look into a graph, checkpoint or data");
  app->require_subcommand(1);
  CLI::App* graph = app->add_subcommand("graph", "the graph of a model, and its memory plan");
  auto args = std::make_shared<GraphArgs>();
  add_run_options(*graph, args->run, "paper");
  graph->add_option("--mode", args->mode, "step or evaluate")
      ->check(CLI::IsMember({"step", "evaluate"}))
      ->default_str("step");
  graph->add_option("--stage", args->stage, "before or after the passes, or the memory plan")
      ->check(CLI::IsMember({"before", "after", "plan"}))
      ->default_str("after");
  graph->callback([args, command] { command.code = run_graph(*args); });
  const auto add_file = [&](const char* name, const char* about, int (*run)(const std::string&)) {
    CLI::App* sub = app->add_subcommand(name, about);
    auto path = std::make_shared<std::string>();
    sub->add_option("path", *path, "the file")->required();
    sub->callback([path, run, command] { command.code = run(*path); });
  };
  add_file("checkpoint", "names, types and metadata of a safetensors file", run_checkpoint);
  add_file("data", "an IDX file, or a folder with MNIST", run_data);
  app->footer(
      "examples:\n"
      "  keel inspect graph mnist_mlp --stage plan\n"
      "  keel inspect checkpoint runs/a/checkpoints/best.safetensors\n"
      "  keel inspect data DIR/mnist");
}

}  // namespace keel::cli
