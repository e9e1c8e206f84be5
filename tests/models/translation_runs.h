// What the tests of translation share: a network that has learned a few pairs, and searches with
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
inline TranslationData data_of(const train::Config& config) {
  return TranslationData::load({.source = config.data().source});
}

// A network of translation, and what it takes to search with it.
struct TranslationRun {
  train::Config config;
  std::unique_ptr<Backend> backend;
  Variables variables{*backend, 1};
  TranslationData data = data_of(config);

  explicit TranslationRun(const Settings& settings = {},
                          const std::string& backend_name = default_backend())
      : config(small_config(settings, "translation")), backend(make_backend(backend_name)) {}

  // Learns the first pairs; returns the loss of the last step.
  double learn(std::int64_t pairs, std::int32_t steps) {
    const auto stream =
        config.model().load(config.data().request())->stream(task::Split::kTrain, {.batch = 4096});
    const task::Batch& batch = stream->pick(first_rows(pairs));
    Program step(*backend, variables, train::build_step(config, batch.sizes), {});
    train::Feeder(config.model()).feed(step, batch);
    step.feed("weight", Tensor::scalar(float(1 / batch.items)));
    step.feed("lr", Tensor::scalar(1e-2f));
    for (std::int32_t i = 0; i < steps; ++i) {
      step.feed("step", Tensor::scalar(i));
      step.feed("tick", Tensor::scalar(i));
      step.run();
    }
    return step.scalar("loss");
  }

  Lines sources(std::size_t count) const {
    Lines lines = data.sentences(task::Split::kTrain).source;
    lines.resize(count);
    return lines;
  }
  // All that a search finds, every answer with its scores.
  Ranked search(const Lines& lines, const SearchOptions& options) {
    train::Evaluator evaluator(*backend, variables, config);
    Translator translator({data.subwords(), lines}, options);
    evaluator.decode(translator);
    return translator.ranked(options.beam.beam);
  }
  // By the options of the model.
  Lines translate(const Lines& lines) {
    train::Evaluator evaluator(*backend, variables, config);
    const auto decoder = config.model().decoder(lines);
    evaluator.decode(*decoder);
    return decoder->answers();
  }
};

// A network that has learned eight pairs by heart.
struct Learned : TranslationRun {
  SentencePairs pairs = data.sentences(task::Split::kTrain);
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
