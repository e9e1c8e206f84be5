// keel predict
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "frontend/io/atomic_file.h"
#include "frontend/io/files_read.h"
#include "frontend/io/message.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_graph.h"
#include "program/common.h"
#include "program/outputs.h"
#include "program/predict_text.h"
#include "program/questions.h"

namespace keel::cli {
namespace {

// Lines that a search looks at together: enough that those of like lengths share batches, and few
// enough that neither memory nor the wait for the first answer grows with the input.
constexpr std::size_t kPortion = 2048;

using Ranked = std::vector<std::vector<task::RankedAnswer>>;

// The answers of a search with their scores; Error{kUsage} where there is no search.
Ranked ranked_answers(const task::Decoder& decoder, const std::string& model, int most) {
  Ranked ranked = decoder.ranked(most);
  check(!ranked.empty(), ErrorKind::kUsage,
        "predict: {} does not rank answers (--scores, --n-best)", model);
  return ranked;
}

nlohmann::ordered_json json_of(const std::vector<task::RankedAnswer>& of_line) {
  auto answers = nlohmann::ordered_json::array();
  for (const task::RankedAnswer& a : of_line) {
    answers.push_back(
        {{"answer", a.text}, {"score", a.score}, {"log_probability", a.log_probability}});
  }
  return answers;
}

std::vector<std::string> with_scores(const Ranked& ranked) {
  std::vector<std::string> lines;
  for (const auto& of_line : ranked) {
    lines.push_back(fmt::format("{:.6f}\t{}", of_line.front().score, of_line.front().text));
  }
  return lines;
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
// file or as JSON when all are there. Answers that are files by themselves get one each. `names`,
// where there are any, are the files that were asked about, one before each answer.
class Answers {
 public:
  Answers(const PredictArgs& args, std::string model) : args_(args), model_(std::move(model)) {}

  std::int64_t size() const { return size_; }
  void take(const task::Decoder& decoder, std::span<const std::string> names) {
    if (args_.scores || args_.n_best > 0) {
      take_ranked(ranked_answers(decoder, model_, std::max(args_.n_best, 1)), names);
    } else if (args_.run.json) {
      take_json(decoder.answers(), names, "answer");
    } else if (!args_.output.empty() && decoder.answers_are_files()) {
      std::ranges::move(decoder.answers(), std::back_inserter(files_));
    } else {
      give_lines(decoder.answers(), names);
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
  void take_ranked(const Ranked& ranked, std::span<const std::string> names) {
    if (args_.run.json) {
      std::vector<nlohmann::ordered_json> answers;
      for (const auto& of_line : ranked) answers.push_back(json_of(of_line));
      take_json(answers, names, "answers");
    } else if (args_.scores) {
      give_lines(with_scores(ranked), names);
    } else {
      give(in_moses_form(ranked, size_));
    }
  }
  template <class Answer>
  void take_json(const std::vector<Answer>& answers, std::span<const std::string> names,
                 const char* key) {
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (names.empty()) {
        json_.push_back(answers[i]);
      } else {
        nlohmann::ordered_json of_file{{"file", names[i]}};
        of_file[key] = answers[i];
        json_.push_back(std::move(of_file));
      }
    }
  }
  void give_lines(const std::vector<std::string>& lines, std::span<const std::string> names) {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      text += (names.empty() ? "" : names[i] + "\t") + lines[i] + "\n";
    }
    give(text);
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

}  // namespace

int run_predict(const PredictArgs& args) {
  auto [path, file, stored] = open_checkpoint(args.path);
  train::Job job = with_settings(std::move(stored), args);
  if (args.prompt) return predict_text(args, {path, std::move(file), std::move(job)});
  const task::Answers kind = job.network().answers();
  check(kind != task::Answers::kNone, ErrorKind::kUsage,
        "predict: {} has no answer to lines of text", job.task().name());
  const bool asks_pictures = kind == task::Answers::kPictures;
  check(asks_pictures || args.files.empty(), ErrorKind::kUsage,
        "predict: expected no files, for {} answers lines of text, got {}", job.task().name(),
        args.files.empty() ? "" : args.files.front());
  const std::vector<std::string> given =
      args.files.empty() ? args.texts : picture_files(args.files);
  if (given.empty()) io::note_read(STDIN_FILENO);
  expect_apart({{"--output", args.output}}, {args.vectors});
  Questions questions(given);
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
    answers.take(*decoder, asks_pictures ? std::span<const std::string>(portion)
                                         : std::span<const std::string>());
    portion = questions.take(kPortion);
    if (portion.empty()) break;
    decoder = decoder_of(job.network(), questions, portion, answers.size() + 1);
  }
  answers.finish();
  return 0;
}

}  // namespace keel::cli
