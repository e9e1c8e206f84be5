#include "tests/models/key_texts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "frontend/train/evaluator.h"
#include "frontend/train/step_graph.h"
#include "tests/support/graph_text.h"

namespace keel::models {
namespace {

using test::operator+;

// Lines of a user, in the words of tests/models/key_files.cpp where training has those.
std::vector<std::string> lines_for(std::string_view task) {
  if (task == "translation") return {"Wort1 Wort4 Wort7.", "Wort2 Wort5."};
  if (task == "text_classifier") return {"A FINE1 Film", "Poor2 poor3"};
  if (task == "order_embeddings") return {"Dog1 Dog4.", "Dog2 dog5."};
  if (task == "attentive_reader") {
    return {"@entity0 saw @entity1 . times3 .\t@placeholder saw @entity1",
            "times1 . times2 @entity1 saw @entity0 times5 .\t@placeholder saw @entity0",
            "saw times7 . @entity1\ttimes4 @placeholder"};
  }
  if (task == "skip_thoughts") return {"word0 Said", "unseen Word1"};
  if (task == "handwriting") return {"Hallo", "Hallo 1"};
  if (task == "draw") return {"2"};
  return {};
}

std::string batch_text(const task::Batch& batch) {
  std::string text = fmt::format("{} {} {}", batch.items, batch.first_row, batch.rows.size());
  for (const std::int64_t size : batch.sizes) text += fmt::format(" {}", size);
  for (const Tensor& value : batch.values) {
    text.append(reinterpret_cast<const char*>(value.data()), std::size_t(value.bytes()));
  }
  return text;
}

std::string stream_text(const train::Job& job, task::Split split,
                        const task::StreamOptions& options) {
  const auto stream = stream_of(job, split, options);
  std::string text = fmt::format("{} rows, {} steps", stream->rows(), stream->steps(0));
  for (std::int64_t step = 0; step < std::min<std::int64_t>(3, stream->steps(0)); ++step) {
    text += batch_text(stream->at(0, step));
  }
  if (const auto decoder = stream->decoder()) text += fmt::format("{} answers", decoder->size());
  return text;
}

// The backend with the first weights of one seed, and what evaluates with them.
struct Checkpoint {
  explicit Checkpoint(const train::Job& job) : evaluator(*backend, variables, job) {
    evaluator.declare();
  }
  std::unique_ptr<Backend> backend = make_backend(default_backend());
  Variables variables{*backend, 1};
  train::Evaluator evaluator;
};

}  // namespace

std::string_view name_of(Shown shown) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"assets", "step", "evaluate", "train", "valid", "test", "kept test", "answers", "scores"});
  static_assert(kNames.size() == std::size_t(Shown::kScores) + 1);
  return kNames[std::size_t(shown)];
}

JobTexts::JobTexts(std::string task, Settings settings)
    : task_(std::move(task)), settings_(std::move(settings)) {}

const std::string& JobTexts::of(Shown shown) {
  if (!texts_.contains(shown)) texts_[shown] = made(shown);
  return texts_.at(shown);
}

const task::Assets& JobTexts::assets() {
  if (!assets_) assets_ = job().network().assets();
  return *assets_;
}

std::string JobTexts::made(Shown shown) {
  const task::StreamOptions evaluation{.batch = 16};
  switch (shown) {
    case Shown::kAssets:
      return fmt::format("{}", fmt::join(job().network().assets(), "\n"));
    case Shown::kStep:
      return test::graph_text(train::build_step(job(), sizes()));
    case Shown::kEvaluate:
      return test::graph_text(train::build_evaluate(job(), sizes()));
    case Shown::kTrain:
      return stream_text(job(), task::Split::kTrain, training(job(), 1));
    case Shown::kValid:
      return stream_text(job(), task::Split::kValid, evaluation);
    case Shown::kTest:
      return stream_text(job(), task::Split::kTest, evaluation);
    case Shown::kKeptTest:
      return stream_text(kept(), task::Split::kTest, evaluation);
    case Shown::kAnswers:
      return answers();
    case Shown::kScores:
      return scores();
  }
  return {};
}

const train::Job& JobTexts::job() {
  if (!job_) job_.emplace(test::small_config(settings_, task_));
  return *job_;
}

const train::Job& JobTexts::kept() {
  if (!kept_) kept_.emplace(test::small_config(settings_, task_), assets());
  return *kept_;
}

task::Sizes JobTexts::sizes() { return job().network().sizes(job().train().batch); }

std::string JobTexts::answers() {
  const std::vector<std::string> lines = lines_for(task_);
  if (lines.empty()) return {};
  Checkpoint checkpoint(kept());
  const auto decoder = kept().network().decoder(lines, 1);
  checkpoint.evaluator.decode(*decoder);
  std::string text = fmt::format("{}\n", fmt::join(decoder->answers(), "\n"));
  for (const auto& answers : decoder->ranked(3)) {
    for (const task::RankedAnswer& a : answers) text += fmt::format("{} {}\n", a.text, a.score);
  }
  return text;
}

std::string JobTexts::scores() {
  Checkpoint checkpoint(kept());
  const auto stream = stream_of(kept(), task::Split::kTest, train::evaluation_options(kept()));
  std::string text;
  for (const train::Measured& m : checkpoint.evaluator.run(*stream).metrics) {
    text += fmt::format("{}={} ", m.info.name, m.value);
  }
  return text;
}

JobTexts JobTexts::with(const std::string& setting) {
  JobTexts changed(task_, settings_ + Settings{setting});
  changed.assets_ = assets();
  return changed;
}

}  // namespace keel::models
