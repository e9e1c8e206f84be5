// keel predict
#include <iostream>
#include <nlohmann/json.hpp>

#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "frontend/train/step_graph.h"
#include "program/common.h"

namespace keel::cli {
namespace {

constexpr std::size_t kMostLines = 1 << 24;

std::vector<std::string> read_lines() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    check(lines.size() < kMostLines, ErrorKind::kBadInput,
          "standard input: expected at most {} lines", kMostLines);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

int run_predict(const PredictArgs& args) {
  const std::string path = checkpoint_path(args.path);
  const io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
  const train::Config config = train::config_of_checkpoint(file, path, make_model);
  const std::vector<std::string> lines = read_lines();
  const auto decoder = config.model().decoder(lines);
  check(decoder != nullptr, ErrorKind::kUsage, "predict: {} has no answer to lines of text",
        config.model().name());
  if (decoder->size() == 0) return 0;
  const auto backend = make_backend(args.run);
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, config);
  evaluator.declare();
  train::load_variables(file, path, variables);
  evaluator.decode(*decoder);
  args.run.json ? print_json(decoder->answers()) : print(text_of_answers(*decoder));
  return 0;
}

}  // namespace keel::cli
