// keel eval
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/message.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/population.h"
#include "frontend/train/progress.h"
#include "frontend/train/run_result.h"
#include "frontend/train/run_state.h"
#include "program/common.h"
#include "program/confusion.h"
#include "program/end_ranks.h"
#include "program/outputs.h"
#include "program/rank_facts.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

task::Split split_called(const std::string& name) {
  if (name == "train") return task::Split::kTrain;
  return name == "valid" ? task::Split::kValid : task::Split::kTest;
}

// The data that the user names, by --data or by --set; empty: those of the training.
std::string named_data(const RunArgs& args) {
  expect_one("--data", args.data, "data.source", args.sets);
  std::string named = args.data;
  for (const std::string& assignment : args.sets) {
    const auto [key, value] = setting_of(assignment);
    if (key == "data.source") named = value;
  }
  return named;
}

bool is_regular(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown);
}

bool is_same_source(const std::string& a, const std::string& b) {
  std::error_code missing;
  return std::filesystem::equivalent(a, b, missing);
}

task::OptionValues evaluation_settings(const EvalArgs& args, const std::string& data,
                                       const task::Task& task) {
  task::OptionValues settings;
  if (!args.run.data.empty()) settings.emplace_back("data.source", args.run.data);
  const bool has_parts =
      std::ranges::any_of(task.options(), [](const auto& o) { return o.first == "parts"; });
  if (is_regular(data) && has_parts) settings.emplace_back("model.parts", "whole");
  for (const std::string& assignment : args.run.sets) {
    check(!assignment.starts_with("train."), ErrorKind::kUsage,
          "eval --set: expected model.NAME=VALUE or data.NAME=VALUE, got '{}': nothing is trained",
          assignment);
    settings.push_back(setting_of(assignment));
  }
  return settings;
}

// The job with the data that are evaluated. Data that are not those of the training need have no
// other split than the one that is asked for, and a file is that split, whole.
train::Job evaluated(train::Job stored, const EvalArgs& args, bool says) {
  const std::string data = named_data(args.run), trained_on = stored.data().source;
  const task::OptionValues settings = evaluation_settings(args, data, stored.task());
  train::Job job = std::move(stored).with(settings);
  if (data.empty() || data == "builtin") return job;
  const bool passes = args.statistics == "pass", same = is_same_source(data, trained_on);
  check(!passes || !is_regular(data), ErrorKind::kUsage,
        "eval --statistics pass: expected a folder with training rows, got the file {}", data);
  if (is_regular(data) && same && says) {
    io::say(fmt::format(
        "note: all of {} is scored, rows that the run was trained on as well; without --data only "
        "those that were held out are",
        data));
  }
  const task::Split split = split_called(args.split);
  if (!passes && (is_regular(data) || (!same && split != task::Split::kTrain)))
    job.read_only(split);
  return job;
}

// The data that were scored, and the rows of them that were not.
std::string scored_text(const task::Stream& rows) {
  std::string text = fmt::format("data: {}\n", shown(rows.source()));
  for (const task::Skipped& left : rows.skipped()) {
    text += fmt::format("not scored: {} {} ({})\n", left.rows, left.unit, left.why);
  }
  return text;
}

nlohmann::ordered_json scored_json(const task::Stream& rows) {
  nlohmann::ordered_json json{{"data", rows.source()},
                              {"not_scored", nlohmann::ordered_json::array()}};
  for (const task::Skipped& left : rows.skipped()) {
    json["not_scored"].push_back({{"count", left.rows}, {"unit", left.unit}, {"why", left.why}});
  }
  return json;
}

// {"answers": 2077, "answers_per_second": 2500.0}, where a decoder found some.
nlohmann::ordered_json decoded_json(const train::Evaluation& e) {
  if (!e.decoded) return nlohmann::ordered_json::object();
  return {{"answers", e.decoded->answers},
          {"answers_per_second", double(e.decoded->answers) / e.decoded->seconds}};
}

std::string decoded_text(const train::Evaluation& e, const task::Decoder* decoder) {
  if (!e.decoded) return "";
  std::string text =
      fmt::format("{} answers in {:.2f} s, {:.0f} a second\n", e.decoded->answers,
                  e.decoded->seconds, double(e.decoded->answers) / e.decoded->seconds);
  for (const auto& [name, detail] : decoder->details())
    text += fmt::format("{}: {}\n", name, detail);
  return text;
}

// Gives norms over the batch the statistics of a pass over the training rows.
void take_statistics(Backend& backend, Variables& variables, const train::Job& job) {
  train::Progress progress(isatty(STDERR_FILENO) != 1);
  train::take_population_statistics(
      backend, variables, job,
      [&](std::int64_t done, std::int64_t of) { progress.evaluation("statistics", done, of); });
}

// Says on a terminal, and nowhere else, how far it has come. The line is gone at the end.
train::Evaluation run_with_progress(train::Evaluator& evaluator, const std::string& split,
                                    const std::function<train::Evaluation()>& run) {
  train::Progress progress(isatty(STDERR_FILENO) != 1);
  evaluator.tell([&](std::int64_t done, std::int64_t of) { progress.evaluation(split, done, of); });
  train::Evaluation result = run();
  evaluator.tell({});
  return result;
}

// If there are several ranks, each evaluates a part of the batches; the first one prints and writes
// the result.
int eval_with(const EvalArgs& args, Communicator& ranks) {
  auto [path, file, stored] = open_checkpoint(args.path);
  const train::Job job = evaluated(std::move(stored), args, ranks.rank() == 0);
  const auto backend = make_backend(args.run);
  expect_same_ranks(ranks, *backend,
                    {{"checkpoint", path},
                     {"--split", args.split},
                     {"--statistics", args.statistics},
                     {"--output", args.output},
                     {"--data", args.run.data},
                     {"--set", fmt::format("{}", fmt::join(args.run.sets, " "))}});
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  train::load_finite(file, path, variables);
  evaluator.share(ranks);
  if (args.statistics == "pass") take_statistics(*backend, variables, job);
  const auto rows = job.splits().stream(split_called(args.split), train::evaluation_options(job));
  const auto decoder = rows->decoder();
  const auto scorer = confusion_scorer_of(job.network());
  check(args.output.empty() || decoder || scorer, ErrorKind::kUsage,
        "eval --output: {} has nothing to write", job.task().name());
  expect_apart({{"--output", args.output}});
  const train::Evaluation e = run_with_progress(
      evaluator, args.split, [&] { return evaluator.run(*rows, decoder.get(), scorer.get()); });
  if (ranks.rank() > 0) return 0;
  if (!args.output.empty()) {
    io::write_file_atomically(
        args.output, decoder ? text_of_answers(*decoder) : classified_text(*scorer, *rows));
  }
  if (args.run.json) {
    nlohmann::ordered_json json{
        {"checkpoint", path}, {"split", args.split}, {"statistics", args.statistics}};
    json.update(scored_json(*rows));
    json.update(evaluation_json(e));
    json["items"] = e.items;
    json.update(decoded_json(e));
    if (decoder) {
      for (const auto& [name, detail] : decoder->details()) json["details"][name] = detail;
    }
    if (scorer) json["confusion"] = confusion_json(scorer->confusion());
    print_json(json);
  } else {
    print(fmt::format("{}: {}\n{}{}{}", args.split, train::text(e), scored_text(*rows),
                      decoded_text(e, decoder.get()),
                      scorer ? confusion_text(scorer->confusion()) : ""));
  }
  check(e.is_finite(), ErrorKind::kDiverged, "eval: the loss is {}: {} gives no result", e.loss,
        path);
  return 0;
}

}  // namespace

int run_eval(const EvalArgs& args) {
  return with_ranks([&](Communicator& ranks) { return eval_with(args, ranks); });
}

}  // namespace keel::cli
