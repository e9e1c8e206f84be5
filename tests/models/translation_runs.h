// Helpers of the tests of translation: a network that has learned a few pairs, and searches with
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backends.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/step_graph.h"
#include "models/translation/model.h"
#include "tests/models/helpers.h"

namespace keel::models {

using Lines = std::vector<std::string>;
using Ranked = std::vector<std::vector<task::RankedAnswer>>;

// The training pairs of a configuration's data.
inline TranslationData data_of(const train::Job& job) {
  return TranslationData::load({.source = job.data().source});
}

// A network of translation, and what it takes to search with it.
struct TranslationRun {
  train::Job job;
  std::unique_ptr<Backend> backend;
  Variables variables{*backend, 1};
  TranslationData data = data_of(job);

  explicit TranslationRun(const Settings& settings = {},
                          const std::string& backend_name = default_backend())
      : job(small_job(settings, "translation")), backend(make_backend(backend_name)) {}

  // Learns the first pairs, at a rate that falls to 0; returns the loss of the last step.
  double learn(std::int64_t pairs, std::int32_t steps) {
    const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096});
    const task::Batch& batch = stream->pick(first_rows(pairs));
    Program step(*backend, variables, train::build_step(job, batch.sizes), {});
    train::Feeder feeder(job.network());
    for (std::int32_t i = 0; i < steps; ++i) {
      feeder.feed(step, batch, {.step = i, .rate = 1e-2 * (steps - i) / steps});
      step.run();
    }
    return step.scalar("loss");
  }

  Lines sources(std::size_t count) const {
    Lines lines = data.corpus.train.source;
    lines.resize(count);
    return lines;
  }
  // All that a search finds, every answer with its scores.
  Ranked search(const Lines& lines, const SearchOptions& options) {
    train::Evaluator evaluator(*backend, variables, job);
    Translator translator({data.subwords, lines}, options);
    evaluator.decode(translator);
    return translator.ranked(options.beam.beam);
  }
  // By the options of the model.
  Lines translate(const Lines& lines) {
    train::Evaluator evaluator(*backend, variables, job);
    const auto decoder = job.network().decoder(lines, 1);
    evaluator.decode(*decoder);
    return decoder->answers();
  }
};

// A network that has learned eight pairs by heart.
struct Learned : TranslationRun {
  SentencePairs pairs = data.corpus.train;
  double loss = learn(8, 150);

  explicit Learned(const Settings& settings = {}) : TranslationRun(with(settings)) {
    pairs.source.resize(8);
    pairs.target.resize(8);
  }
  static Settings with(Settings settings) {
    settings.insert(settings.begin(), {"model.longest=30", "model.dropout=0"});
    return settings;
  }
};

}  // namespace keel::models
