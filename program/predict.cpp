// keel predict
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/files_read.h"
#include "frontend/io/message.h"
#include "frontend/text/line_reader.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_graph.h"
#include "program/common.h"
#include "program/outputs.h"
#include "program/predict_text.h"

namespace keel::cli {
namespace {

constexpr std::string_view kStandardInput = "standard input";
constexpr std::size_t kMostLines = 1 << 24;
// Lines that a search looks at together: enough that those of like lengths share batches, and few
// enough that neither memory nor the wait for the first answer grows with the input.
constexpr std::size_t kPortion = 2048;

// What is to be answered: --text, or else the lines of standard input.
class Questions {
 public:
  explicit Questions(const std::vector<std::string>& texts) : texts_(texts) {}

  bool are_texts() const { return !texts_.empty(); }
  // Up to `most` more lines, fewer where together they are as long as the longest line.
  std::vector<std::string> take(std::size_t most, std::size_t most_bytes = text::kMaxLineBytes) {
    std::vector<std::string> lines;
    for (std::size_t bytes = 0; lines.size() < most && bytes < most_bytes;) {
      std::optional<std::string> line = next();
      if (!line) break;
      bytes += line->size();
      lines.push_back(std::move(*line));
    }
    return lines;
  }
  std::vector<std::string> take_rest(std::size_t most) { return take(most, SIZE_MAX); }

 private:
  std::optional<std::string> next() {
    if (!texts_.empty()) {
      return given_ < texts_.size() ? std::optional(texts_[given_++]) : std::nullopt;
    }
    const std::optional<text::Line> line = input_.next();
    return line ? std::optional(std::string(line->text)) : std::nullopt;
  }

  const std::vector<std::string>& texts_;
  std::size_t given_ = 0;
  text::LineReader input_{stdin, std::string(kStandardInput)};
};

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

// Lines are counted from 0 on, the first of these being `first`.
std::string in_moses_form(const Ranked& ranked, std::int64_t first) {
  std::string text;
  for (std::size_t line = 0; line < ranked.size(); ++line) {
    for (const task::RankedAnswer& a : ranked[line]) {
      text += fmt::format("{} ||| {} ||| logp= {:.6f} ||| {:.6f}\n", first + line, a.text,
                          a.log_probability, a.score);
    }
  }
  return text;
}

// What decides how answers are found; what the network is of, the checkpoint says.
train::Job with_settings(train::Job job, const PredictArgs& args) {
  std::vector<std::string> settings = args.run.sets;
  expect_one("--bias", args.bias, "model.bias", args.run.sets);
  expect_one("--vectors", args.vectors, "model.vectors", args.run.sets);
  if (!args.bias.empty()) settings.push_back("model.bias=" + args.bias);
  if (!args.vectors.empty()) settings.push_back("model.vectors=" + args.vectors);
  if (args.tokenized) {
    const task::OptionValues options = job.task().options();
    check(std::ranges::any_of(options, [](const auto& o) { return o.first == "tokenized"; }),
          ErrorKind::kUsage,
          "predict --tokenized: expected a model of translation, got {}, which takes lines in one "
          "form alone",
          job.task().name());
    settings.emplace_back("model.tokenized=true");
  }
  task::OptionValues values;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    check(equals != std::string::npos && setting.starts_with("model."), ErrorKind::kUsage,
          "predict --set: expected model.NAME=VALUE, got '{}'", setting);
    values.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return std::move(job).with(values);
}

// hand.svg becomes hand-3.svg, and hand-03.svg where the last of them is hand-12.svg.
std::filesystem::path numbered(const std::filesystem::path& file, std::size_t number,
                               std::size_t last) {
  const std::size_t digits = fmt::formatted_size("{}", last);
  return file.parent_path() / fmt::format("{}-{:0{}}{}", file.stem().string(), number, digits,
                                          file.extension().string());
}

// Takes the answers of one portion after the other: to standard output they go as they come, into a
// file or as JSON when all are there. Answers that are files by themselves get one each.
class Answers {
 public:
  Answers(const PredictArgs& args, std::string model) : args_(args), model_(std::move(model)) {}

  std::int64_t size() const { return size_; }
  void take(const task::Decoder& decoder) {
    if (args_.scores || args_.n_best > 0) {
      take_ranked(ranked_answers(decoder, model_, std::max(args_.n_best, 1)));
    } else if (args_.run.json) {
      for (std::string& answer : decoder.answers()) json_.push_back(std::move(answer));
    } else if (!args_.output.empty() && decoder.answers_are_files()) {
      std::ranges::move(decoder.answers(), std::back_inserter(files_));
    } else {
      give(text_of_answers(decoder));
    }
    size_ += decoder.size();
  }
  void finish() {
    if (args_.run.json) give(json_text(json_));
    if (args_.output.empty()) return;
    if (files_.empty()) return io::write_file_atomically(args_.output, text_);
    if (files_.size() == 1) return io::write_file_atomically(args_.output, files_[0]);
    write_files();
  }

 private:
  void write_files() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      io::write_file_atomically(numbered(args_.output, i + 1, files_.size()), files_[i]);
    }
  }
  void take_ranked(const Ranked& ranked) {
    if (args_.run.json) {
      for (auto& of_line : ranked_json(ranked)) json_.push_back(std::move(of_line));
    } else {
      give(args_.scores ? with_scores(ranked) : in_moses_form(ranked, size_));
    }
  }
  void give(std::string text) {
    if (args_.output.empty()) return print(text);
    text_ += text;
  }

  const PredictArgs& args_;
  std::string model_, text_;
  std::vector<std::string> files_;  // the contents of files, in the order of their lines
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
  std::int64_t size_ = 0;
};

// Of a network that needs all lines at once the portion becomes all of them.
std::unique_ptr<task::Decoder> decoder_of_lines(const task::Network& network, Questions& questions,
                                                std::vector<std::string>& portion,
                                                std::int64_t first) {
  if (network.answers() == task::Answers::kAllLines) {
    for (std::string& line : questions.take_rest(kMostLines)) portion.push_back(std::move(line));
    check(portion.size() < kMostLines, ErrorKind::kBadInput, "{}: expected fewer than {} lines",
          kStandardInput, kMostLines);
  }
  return network.decoder(portion, first);
}

// Networks call the lines that they are asked standard input, which those of --text are not.
std::unique_ptr<task::Decoder> decoder_of(const task::Network& network, Questions& questions,
                                          std::vector<std::string>& portion, std::int64_t first) {
  try {
    return decoder_of_lines(network, questions, portion, first);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::size_t at = message.find(kStandardInput);
    if (!questions.are_texts() || at == message.npos) throw;
    throw Error(error.kind(), message.replace(at, kStandardInput.size(), "--text"));
  }
}

}  // namespace

int run_predict(const PredictArgs& args) {
  auto [path, file, stored] = open_checkpoint(args.path);
  train::Job job = with_settings(std::move(stored), args);
  if (args.prompt) return predict_text(args, {path, std::move(file), std::move(job)});
  check(job.network().answers() != task::Answers::kNone, ErrorKind::kUsage,
        "predict: {} has no answer to lines of text", job.task().name());
  if (args.texts.empty()) io::note_read(STDIN_FILENO);
  expect_apart({{"--output", args.output}}, {args.vectors});
  Questions questions(args.texts);
  std::vector<std::string> portion = questions.take(kPortion);
  auto decoder = decoder_of(job.network(), questions, portion, 1);
  const std::string note = job.network().note_on_lines();
  if (!note.empty()) io::say("note: " + note);
  Answers answers(args, std::string(job.task().name()));
  if (decoder->size() == 0) {
    answers.finish();
    return 0;
  }
  const auto backend = make_backend(args.run);
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  train::load_finite(file, path, variables);
  const train::SignalGuard signals;
  while (true) {
    evaluator.decode(*decoder, [] { return train::SignalGuard::received() != 0; });
    if (const int signal = train::SignalGuard::received()) {
      io::say(
          fmt::format("interrupted: {} lines were answered{}", answers.size(),
                      args.output.empty() && !args.run.json ? "" : ", and nothing was written"));
      return 128 + signal;
    }
    answers.take(*decoder);
    portion = questions.take(kPortion);
    if (portion.empty()) break;
    decoder = decoder_of(job.network(), questions, portion, answers.size() + 1);
  }
  answers.finish();
  return 0;
}

}  // namespace keel::cli
