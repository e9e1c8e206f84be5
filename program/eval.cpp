// keel eval
#include <nlohmann/json.hpp>

#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "program/common.h"

namespace keel::cli {
namespace {

task::Split split_called(const std::string& name) {
  if (name == "train") return task::Split::kTrain;
  return name == "valid" ? task::Split::kValid : task::Split::kTest;
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
  const auto rows = config.model()
                        .load(config.data().request())
                        ->stream(split_called(args.split), train::evaluation_options(config));
  const train::Evaluation e = evaluator.run(*rows);
  if (args.run.json) {
    nlohmann::ordered_json json{{"checkpoint", path}, {"split", args.split}};
    json.update(evaluation_json(e));
    print_json(json);
  } else {
    print(fmt::format("{}: {}\n", args.split, train::text(e)));
  }
  return 0;
}

}  // namespace keel::cli
