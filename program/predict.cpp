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

using Ranked = std::vector<std::vector<task::RankedAnswer>>;

// The answers of a search with their scores; Error{kUsage} where there is no search.
Ranked ranked_answers(const task::Decoder& decoder, const std::string& model, int most) {
  Ranked ranked = decoder.ranked(most);
  check(!ranked.empty(), ErrorKind::kUsage,
        "predict: {} does not rank answers (--scores, --n-best)", model);
  return ranked;
}

nlohmann::ordered_json ranked_json(const Ranked& ranked) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& of_line : ranked) {
    auto answers = nlohmann::ordered_json::array();
    for (const task::RankedAnswer& a : of_line) {
      answers.push_back(
          {{"answer", a.text}, {"score", a.score}, {"log_probability", a.log_probability}});
    }
    json.push_back(std::move(answers));
  }
  return json;
}

std::string with_scores(const Ranked& ranked) {
  std::string text;
  for (const auto& of_line : ranked) {
    text += fmt::format("{:.6f}\t{}\n", of_line.front().score, of_line.front().text);
  }
  return text;
}

std::string in_moses_form(const Ranked& ranked) {
  std::string text;
  for (std::size_t line = 0; line < ranked.size(); ++line) {
    for (const task::RankedAnswer& a : ranked[line]) {
      text += fmt::format("{} ||| {} ||| logp= {:.6f} ||| {:.6f}\n", line, a.text,
                          a.log_probability, a.score);
    }
  }
  return text;
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
  if (!args.scores && args.n_best == 0) {
    args.run.json ? print_json(decoder->answers()) : print(text_of_answers(*decoder));
    return 0;
  }
  const Ranked ranked =
      ranked_answers(*decoder, std::string(config.model().name()), std::max(args.n_best, 1));
  if (args.run.json) {
    print_json(ranked_json(ranked));
  } else {
    print(args.scores ? with_scores(ranked) : in_moses_form(ranked));
  }
  return 0;
}

}  // namespace keel::cli
