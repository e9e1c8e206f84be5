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

// What decides how answers are found; what the network is of, the checkpoint says.
void apply_settings(train::Config& config, const PredictArgs& args) {
  std::vector<std::string> settings = args.run.sets;
  if (!args.bias.empty()) settings.push_back("model.bias=" + args.bias);
  if (!args.vectors.empty()) settings.push_back("model.vectors=" + args.vectors);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    check(equals != std::string::npos && setting.starts_with("model."), ErrorKind::kUsage,
          "predict --set: expected model.NAME=VALUE, got '{}'", setting);
    config.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  config.validate();
}

void write_answers(const PredictArgs& args, const std::string& text) {
  args.output.empty() ? print(text) : io::write_file_atomically(args.output, text);
}

// Writes the answers, or those that were ranked with what they were ranked by.
void give_answers(const PredictArgs& args, const task::Decoder& decoder, const std::string& model) {
  if (args.scores || args.n_best > 0) {
    const Ranked ranked = ranked_answers(decoder, model, std::max(args.n_best, 1));
    if (args.run.json) return print_json(ranked_json(ranked));
    return write_answers(args, args.scores ? with_scores(ranked) : in_moses_form(ranked));
  }
  const std::vector<std::string> answers = decoder.answers();
  if (args.run.json && args.output.empty()) return print_json(answers);
  // In a file of its own a single answer may be of any kind, with no line's end behind it.
  const bool is_whole_file = !args.output.empty() && answers.size() == 1;
  write_answers(args, is_whole_file ? answers[0] : text_of_answers(decoder));
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
  give_answers(args, *decoder, std::string(config.model().name()));
  return 0;
}

}  // namespace keel::cli
