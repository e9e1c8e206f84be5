// keel eval
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/train/evaluator.h"
#include "frontend/train/run_log.h"
#include "frontend/train/run_state.h"
#include "program/common.h"

namespace keel::cli {
namespace {

// A checkpoint file, or of a run's folder the best checkpoint.
std::filesystem::path checkpoint_path(const std::string& given) {
  if (!std::filesystem::is_directory(given)) return given;
  return train::RunFolder{given}.checkpoints() / "best.safetensors";
}

const data::Dataset& pick(const task::Splits& splits, const std::string& name) {
  if (name == "train") return splits.train;
  return name == "valid" ? splits.valid : splits.test;
}

}  // namespace

int run_eval(const EvalArgs& args) {
  const std::string path = checkpoint_path(args.path);
  const io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
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

}  // namespace keel::cli
