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

// The answer to every line, in the order of the lines.
std::vector<std::string> answers(train::Evaluator& evaluator, const task::Predictor& predictor,
                                 const std::vector<std::string>& lines) {
  std::vector<std::string> result(lines.size());
  const auto stream = predictor.stream(lines);
  evaluator.predict(*stream, [&](const task::Batch& batch, const auto& predictions) {
    for (std::size_t place = 0; place < batch.rows.size(); ++place) {
      const std::int64_t row = batch.rows[place];
      if (row < 0) continue;
      result[std::size_t(row)] = predictor.answer(predictions, std::int64_t(place));
    }
  });
  return result;
}

}  // namespace

int run_predict(const PredictArgs& args) {
  const std::string path = checkpoint_path(args.path);
  const io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
  const train::Config config = train::config_of_checkpoint(file, path, make_model);
  const auto predictor = config.model().predictor();
  check(predictor != nullptr, ErrorKind::kUsage, "predict: {} has no answer to lines of text",
        config.model().name());
  const auto backend = make_backend(args.run);
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, config);
  evaluator.declare();
  train::load_variables(file, path, variables);
  const std::vector<std::string> lines = read_lines();
  if (lines.empty()) return 0;
  const std::vector<std::string> said = answers(evaluator, *predictor, lines);
  args.run.json ? print_json(said) : print(fmt::format("{}\n", fmt::join(said, "\n")));
  return 0;
}

}  // namespace keel::cli
