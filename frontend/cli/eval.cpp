// keel eval
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/cli/common.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_log.h"
#include "frontend/train/run_state.h"

namespace keel::cli {
namespace {

struct EvalArgs {
  RunArgs run;
  std::string path, split = "test";
};

// A checkpoint file, or of a run's folder the best checkpoint.
std::filesystem::path checkpoint_path(const std::string& given) {
  if (!std::filesystem::is_directory(given)) return given;
  return train::RunFolder{given}.checkpoints() / "best.safetensors";
}

const data::Dataset& pick(const task::Splits& splits, const std::string& name) {
  if (name == "train") return splits.train;
  return name == "valid" ? splits.valid : splits.test;
}

int run_eval(const EvalArgs& args) {
  const std::string path = checkpoint_path(args.path);
  const train::TensorFile file = train::read_safetensors(path, {.require_checksums = true});
  train::Config config = train::config_of_checkpoint(file, path, make_model);
  if (!args.run.data.empty()) config.set("data.source", args.run.data);
  const auto backend = make_backend(args.run);
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, config);
  evaluator.declare();
  train::load_variables(file, path, variables);
  const task::Splits splits = config.model().load(config.data().request());
  const train::Evaluation e = evaluator.run(pick(splits, args.split));
  if (args.run.json) {
    print_json({{"checkpoint", path},
                {"split", args.split},
                {"loss", e.loss},
                {"error", e.error},
                {"rows", e.rows}});
  } else {
    print(fmt::format("{} error: {:.2f} % ({:.0f} of {} wrong), loss {:.4f}\n", args.split,
                      100 * e.error, e.error * double(e.rows), e.rows, e.loss));
  }
  return 0;
}

}  // namespace

void add_eval(Command command) {
  CLI::App* app = command.app.add_subcommand("eval", "evaluate a checkpoint");
  auto args = std::make_shared<EvalArgs>();
  app->add_option("checkpoint", args->path, "a checkpoint file, or a run's folder (its best)")
      ->required();
  app->add_option("--data", args->run.data, "builtin, or a folder; default: as in training");
  app->add_option("--split", args->split, "train, valid or test")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->default_str("test");
  add_backend_options(*app, args->run);
  app->footer(
      "examples:\n  keel eval runs/mnist_mlp-laptop\n  keel eval runs/a --split valid --json");
  app->callback([args, command] { command.code = run_eval(*args); });
}

}  // namespace keel::cli
