// keel predict
#include <iostream>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
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

// What decides how answers are found; what the network is of, the checkpoint says.
void apply_settings(train::Config& config, const PredictArgs& args) {
  std::vector<std::string> settings = args.run.sets;
  if (!args.bias.empty()) settings.push_back("model.bias=" + args.bias);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    check(equals != std::string::npos && setting.starts_with("model."), ErrorKind::kUsage,
          "predict --set: expected model.NAME=VALUE, got '{}'", setting);
    config.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  config.validate();
}

}  // namespace

int run_predict(const PredictArgs& args) {
  const std::string path = checkpoint_path(args.path);
  const io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
  train::Config config = train::config_of_checkpoint(file, path, make_model);
  apply_settings(config, args);
  const std::vector<std::string> lines = args.texts.empty() ? read_lines() : args.texts;
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
  if (!args.output.empty()) {
    // A single answer may be a file of any kind, with no line's end behind it.
    const std::vector<std::string> answers = decoder->answers();
    io::write_file_atomically(args.output,
                              answers.size() == 1 ? answers[0] : text_of_answers(*decoder));
  } else {
    args.run.json ? print_json(decoder->answers()) : print(text_of_answers(*decoder));
  }
  return 0;
}

}  // namespace keel::cli
