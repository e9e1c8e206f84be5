// A table of what every task says of its results: the first of its metrics picks the best weights.
#include <doctest/doctest.h>

#include <numbers>

#include "tests/models/every_task.h"

namespace keel::models {
namespace {

enum class Better { kLower, kHigher, kNeither };

// The function that forms a metric: none where a scorer counts it.
struct MetricRow {
  std::string task, name, unit;
  Better better;
  double (*of)(double, double) = nullptr;
};

// The first of a task decides which weights are the best.
std::vector<MetricRow> expected_metrics() {
  using enum Better;
  const auto error = [](const char* task) {
    return MetricRow{task, "error", "%", kLower, task::percent_of};
  };
  return {error("mnist_mlp"),
          error("mnist_cnn"),
          {"text_classifier", "accuracy", "%", kHigher, task::percent_without},
          {"translation", "perplexity", "", kLower, task::perplexity_of},
          {"translation", "bleu", "", kHigher, task::mean_of},
          {"dependency_parser", "uas", "%", kHigher, task::percent_of},
          {"dependency_parser", "las", "%", kHigher, task::percent_of},
          {"dependency_parser", "uas_punct", "%", kHigher, task::percent_of},
          {"dependency_parser", "las_punct", "%", kHigher, task::percent_of},
          {"dependency_parser", "accuracy", "%", kHigher, task::percent_without},
          {"order_embeddings", "image_recall", "%", kHigher},
          {"order_embeddings", "image_r1", "%", kHigher},
          {"order_embeddings", "image_r5", "%", kHigher},
          {"order_embeddings", "image_r10", "%", kHigher},
          {"order_embeddings", "image_mean_rank", "", kLower},
          {"order_embeddings", "image_median_rank", "", kLower},
          {"order_embeddings", "caption_r1", "%", kHigher},
          {"order_embeddings", "caption_r5", "%", kHigher},
          {"order_embeddings", "caption_r10", "%", kHigher},
          {"order_embeddings", "caption_mean_rank", "", kLower},
          {"order_embeddings", "caption_median_rank", "", kLower},
          error("attentive_reader"),
          error("cifar_resnet20"),
          error("cifar_vgg"),
          {"deep_linear", "squared_error", "", kLower, task::mean_of},
          {"handwriting", "nll", "nats", kLower, task::mean_of},
          {"handwriting", "nll_point", "nats", kLower, task::mean_of},
          {"handwriting", "sse", "", kLower, task::mean_of},
          {"handwriting", "held", "%", kNeither, task::percent_of},
          {"draw", "bound", "nats", kLower, task::mean_of},
          {"draw", "reconstruction", "nats", kNeither, task::mean_of},
          {"draw", "kl", "nats", kNeither, task::mean_of},
          {"skip_thoughts", "nll", "nats a word", kLower, task::mean_of},
          {"char_lm", "bpc", "bits", kLower, task::bits_of},
          {"word_lm", "ppl", "", kLower, task::perplexity_of}};
}

Better direction_of(const task::MetricInfo& info) {
  if (!info.has_direction) return Better::kNeither;
  return info.higher_is_better ? Better::kHigher : Better::kLower;
}

TEST_CASE("metrics: every task's, in their order, each with unit, direction and formula") {
  const std::vector<MetricRow> expected = expected_metrics();
  for (const ModelEntry& entry : all_models()) {
    CAPTURE(entry.name);
    std::vector<MetricRow> rows;
    std::ranges::copy_if(expected, std::back_inserter(rows),
                         [&](const MetricRow& row) { return row.task == entry.name; });
    const std::vector<task::MetricInfo> infos = entry.make()->metrics();
    REQUIRE(infos.size() == rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CAPTURE(rows[i].name);
      CHECK(infos[i].name == rows[i].name);
      CHECK(infos[i].unit == rows[i].unit);
      CHECK(int(direction_of(infos[i])) == int(rows[i].better));
      CHECK((infos[i].of == rows[i].of));
    }
  }
}

TEST_CASE("metrics: values of sums and counts, by hand") {
  CHECK(task::mean_of(3, 4) == 0.75);
  CHECK(task::percent_of(3, 4) == 75);
  CHECK(task::percent_without(3, 4) == 25);
  CHECK(task::perplexity_of(8 * std::numbers::ln2, 4) == doctest::Approx(4).epsilon(1e-15));
  CHECK(task::bits_of(8 * std::numbers::ln2, 4) == doctest::Approx(2).epsilon(1e-15));
}

}  // namespace
}  // namespace keel::models
