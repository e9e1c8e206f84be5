// keel predict
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "frontend/io/files_read.h"
#include "frontend/io/message.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_graph.h"
#include "program/answers.h"
#include "program/common.h"
#include "program/end_ranks.h"
#include "program/outputs.h"
#include "program/predict_text.h"
#include "program/questions.h"

namespace keel::cli {
namespace {

// Lines that a search looks at together: enough that those of like lengths share batches, and few
// enough that neither memory nor the wait for the first answer grows with the input.
constexpr std::size_t kPortion = 512;

// The settings for finding answers; those of the network come from the checkpoint.
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
          "predict --tokenized: expected a run of translation, got {}, which takes lines in only "
          "one form",
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

// The lines that a rank answers next. All ranks know how many the ranks before it have.
using Portions = std::vector<std::vector<std::string>>;

// CBOR, unlike JSON, takes lines of any bytes.
std::string bytes_of(const Portions& portions) {
  std::string bytes;
  nlohmann::json::to_cbor(nlohmann::json(portions), bytes);
  return bytes;
}

// Answers the user's lines, or pictures, portion by portion. Of several ranks each takes a whole
// portion, so that the batches, and the answers to the bit, are those of one process. The first
// rank reads the lines and gives the answers, in their order.
class Prediction {
 public:
  Prediction(const PredictArgs& args, const train::Job& job, const std::vector<std::string>& given,
             Communicator& ranks)
      : args_(args), job_(job), ranks_(ranks), questions_(given), answers_(args) {}

  // `evaluator` is called before the first search. Returns the exit code.
  int run(const std::function<train::Evaluator&()>& evaluator) {
    std::optional<train::SignalGuard> signals;  // not while a user still types the first lines
    while (true) {
      Portions portions = next_portions();
      if (portions[0].empty() && lines_ > 0) break;
      const auto decoder = decoder_of_own(portions);
      if (portions[0].empty()) break;
      if (!signals) signals.emplace();
      if (decoder) {
        evaluator().decode(*decoder, [] { return train::SignalGuard::received() != 0; });
      }
      if (const int signal = collect(decoder.get(), portions)) return interrupted(signal);
      for (const auto& portion : portions) {
        lines_ += std::ssize(portion);
        if (is_first()) count_words(portion);
      }
    }
    if (is_first()) answers_.finish();
    if (is_first()) warn_of_unknown_words();
    return 0;
  }

 private:
  bool is_first() const { return ranks_.rank() == 0; }
  bool needs_all_lines() const { return job_.network().answers() == task::Answers::kAllLines; }

  // A portion for every rank, read by the first one; the last ones may be empty.
  Portions next_portions() {
    Portions portions(std::size_t(ranks_.size()));
    if (is_first()) {
      for (auto& portion : portions) {
        portion = questions_.take(kPortion);
        if (needs_all_lines()) break;
      }
    }
    if (ranks_.size() == 1) return portions;
    return nlohmann::json::from_cbor(gathered(ranks_, bytes_of(portions))[0]);
  }

  // Null if this rank, which is not the first, has no line to answer.
  std::unique_ptr<task::Decoder> decoder_of_own(Portions& portions) {
    std::vector<std::string>& own = portions[std::size_t(ranks_.rank())];
    if (own.empty() && !is_first()) return nullptr;
    if (names_files()) {
      check(!own.empty(), ErrorKind::kBadInput, "predict: expected pictures, got none");
      expect_files(own, job_.task().name());
    }
    std::int64_t first = lines_ + 1;
    for (int r = 0; r < ranks_.rank(); ++r) first += std::ssize(portions[std::size_t(r)]);
    return decoder_of(job_.network(), questions_, own, first);
  }

  // Gives the answers of all ranks, unless one of them has received a signal, which is returned.
  int collect(const task::Decoder* decoder, const Portions& portions) {
    int signal = train::SignalGuard::received();
    Found own;
    if (decoder != nullptr && signal == 0) own = Found::of(*decoder, args_, job_.task().name());
    if (ranks_.size() == 1) {
      if (signal == 0) give(std::move(own), portions[0]);
      return signal;
    }
    const std::vector<std::string> all = gathered(ranks_, char(signal) + own.bytes());
    for (const std::string& of_rank : all) signal = std::max(signal, int(of_rank[0]));
    for (std::size_t r = 0; is_first() && signal == 0 && r < all.size(); ++r) {
      give(Found::of_bytes(std::string_view(all[r]).substr(1)), portions[r]);
    }
    return signal;
  }

  bool names_files() const { return job_.network().answers() == task::Answers::kPictures; }

  void give(Found found, const std::vector<std::string>& portion) {
    if (found.size == 0) return;
    answers_.take(std::move(found), names_files() ? std::span<const std::string>(portion)
                                                  : std::span<const std::string>());
  }

  void count_words(const std::vector<std::string>& portion) {
    const task::WordCount more = job_.network().word_count(portion);
    words_.words += more.words;
    words_.unknown += more.unknown;
  }

  // Answers to words that a network has never seen look like any others.
  void warn_of_unknown_words() const {
    if (words_.unknown == 0 || words_.unknown * 2 < words_.words) return;
    io::warn(
        words_.unknown == words_.words
            ? fmt::format("all {} words are unknown to the model: its answers do not depend on "
                          "which words they are",
                          words_.words)
            : fmt::format("{} of {} words are unknown to the model", words_.unknown, words_.words));
  }

  int interrupted(int signal) const {
    if (is_first()) {
      const bool came = args_.output.empty() && !args_.run.json;
      io::say(fmt::format("interrupted: {} lines were answered{}", answers_.size(),
                          came ? "" : ", and nothing was written"));
    }
    return 128 + signal;
  }

  const PredictArgs& args_;
  const train::Job& job_;
  Communicator& ranks_;
  Questions questions_;
  Answers answers_;
  std::int64_t lines_ = 0;  // given to searches so far
  task::WordCount words_;   // of them
};

int predict_with(const PredictArgs& args, Communicator& ranks) {
  auto [path, file, stored] = open_checkpoint(args.path);
  train::Job job = with_settings(std::move(stored), args);
  if (args.prompt) {  // one text, which one rank writes
    return ranks.rank() == 0 ? predict_text(args, {path, std::move(file), std::move(job)}) : 0;
  }
  const task::Answers kind = job.network().answers();
  check(kind != task::Answers::kNone, ErrorKind::kUsage,
        "predict: {} has no answer to lines of text", job.task().name());
  check(kind == task::Answers::kPictures || args.files.empty(), ErrorKind::kUsage,
        "predict: expected no files, for {} answers lines of text, got {}", job.task().name(),
        args.files.empty() ? "" : args.files.front());
  const std::vector<std::string> given =
      args.files.empty() ? args.texts : picture_files(args.files);
  const bool is_first = ranks.rank() == 0;
  if (given.empty() && is_first) io::note_read(STDIN_FILENO);
  expect_apart({{"--output", args.output}}, {args.vectors});
  const std::string note = job.network().note_on_lines();
  if (!note.empty() && is_first) io::say("note: " + note);
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Variables> variables;
  std::unique_ptr<train::Evaluator> evaluator;
  return Prediction(args, job, given, ranks).run([&]() -> train::Evaluator& {
    if (evaluator) return *evaluator;
    backend = make_backend(args.run);
    variables = std::make_unique<Variables>(*backend, 0);
    evaluator = std::make_unique<train::Evaluator>(*backend, *variables, job);
    evaluator->declare();
    train::load_finite(file, path, *variables);
    return *evaluator;
  });
}

}  // namespace

int run_predict(const PredictArgs& args) {
  return with_ranks([&](Communicator& ranks) { return predict_with(args, ranks); });
}

}  // namespace keel::cli
