// The network of order embeddings: its loss, gradients, padding and what it is asked for.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "models/order_embeddings/model.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

constexpr const char* kModel = "order_embeddings";

train::Job job_with(const Settings& settings) { return small_job(settings, kModel); }

// The network's results for captions, by their numbers in the training split, in float64.
struct Said {
  double loss = 0;
  Tensor captions, images;  // (rows, width)

  Said(const train::Job& job, const std::vector<std::int64_t>& rows,
       const std::string& backend_name = "reference") {
    const auto backend = make_backend(backend_name);
    const auto stream = job.splits().stream(task::Split::kTrain, {.shuffle = {}});
    const task::Batch& batch = stream->pick(rows);
    Graph g;
    nn::Net net{.graph = g};
    const task::Outputs outputs =
        job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
    g.mark_output("loss", outputs.loss_sum);
    for (const NamedValue& said : outputs.predictions) g.mark_output(said.name, said.value);
    Variables variables(*backend, 5);
    Program program(*backend, variables, g);
    train::Feeder(job.network()).feed(program, batch);
    program.run();
    loss = program.scalar("loss");
    captions = program.fetch("caption");
    images = program.fetch("image");
  }
};

// L of embeddings, as the papers write it; rows are captions, five in a row an image.
double loss_of(const Said& said, const std::vector<std::int64_t>& rows, bool by_order, double m) {
  const std::int64_t width = said.captions.shape()[1];
  const auto e = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const double s = said.captions.at(std::int64_t(i) * width + k),
                   f = said.images.at(std::int64_t(j) * width + k);
      sum += !by_order ? -s * f : s > f ? (s - f) * (s - f) : 0;
    }
    return sum;
  };
  double loss = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (rows[i] / 5 == rows[j] / 5) continue;
      loss += std::max(0.0, m + e(j, j) - e(i, j)) + std::max(0.0, m + e(i, i) - e(i, j));
    }
  }
  return loss;
}

TEST_CASE("order_embeddings: the loss is the sum over pairs of different images, times the rows") {
  const std::vector<std::int64_t> rows{0, 1, 7, 12, 33, 34, 60};
  for (const bool by_order : {true, false}) {
    const Said said(
        job_with({by_order ? "model.error=order" : "model.error=symmetric", "model.margin=0.2"}),
        rows);
    // Embeddings come back in float32: each of 84 terms is off by some 1e-7.
    CHECK(said.loss / 7 == doctest::Approx(loss_of(said, rows, by_order, 0.2)).epsilon(1e-6));
    for (std::int64_t i = 0; i < 7; ++i) {
      double squares = 0, least = 0;
      for (std::int64_t k = 0; k < 16; ++k) {
        squares += std::pow(said.captions.at(16 * i + k), 2);
        least = std::min(least, said.captions.at(16 * i + k));
      }
      CHECK(squares == doctest::Approx(1).epsilon(1e-6));
      CHECK((least == 0) == by_order);
    }
  }
}

TEST_CASE("order_embeddings: the order of the rows does not matter to the loss") {
  const train::Job job = job_with({});
  const double loss = Said(job, {3, 9, 14, 22, 41}).loss;
  CHECK(Said(job, {41, 3, 22, 14, 9}).loss == doctest::Approx(loss).epsilon(1e-12));
  CHECK(Said(job, {41, 3, 22, 14, 8}).loss != doctest::Approx(loss).epsilon(1e-4));
}

// With so large a margin every pair counts: a step does not cross the edge of any.
TEST_CASE("order_embeddings: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  for (const char* norm : {"none", "layernorm"}) {
    CAPTURE(std::string(norm));
    check_gradients(job_with({std::string("model.norm=") + norm, "model.margin=2"}), 11);
  }
  check_gradients(job_with({"model.error=symmetric", "model.margin=2"}), 11);
}

TEST_CASE("order_embeddings: a longer caption beside it changes no bit of an embedding") {
  const train::Job job = job_with({});
  const std::string backend = default_backend();
  const auto stream = job.splits().stream(task::Split::kTrain, {.shuffle = {}});
  const auto length_with = [&](std::int64_t row) {
    return stream->pick(std::vector{row}).sizes[1];
  };
  std::int64_t small = 0, large = 0;
  for (std::int64_t row = 0; row < 40; ++row) {
    if (length_with(row) < length_with(small)) small = row;
    if (length_with(row) > length_with(large)) large = row;
  }
  REQUIRE(length_with(small) < length_with(large));
  const Said tight(job, {small, small}, backend), wide(job, {small, large}, backend);
  CHECK(std::memcmp(tight.captions.data(), wide.captions.data(), 16 * sizeof(float)) == 0);
}

TEST_CASE("order_embeddings: parameters are those of the paper") {
  Graph g;
  nn::Net net{.graph = g};
  const train::Job job = job_with({"model.norm=none", "model.width=1024", "model.word_width=300"});
  const task::Inputs in = train::add_inputs(g, job.network(), {2, 4});
  job.network().build(net, in);
  const auto words = std::int64_t(
      text::Vocabulary::parse(job.network().assets().at("vocabulary"), "vocabulary").size());
  const std::int64_t gru = 3 * (300 * 1024 + 1024 * 1024 + 1024), image = 256 * 1024 + 1024;
  CHECK(count_parameters(g) == 300 * words + gru + image);
}

TEST_CASE("order_embeddings: eight images are found among eight after a few updates" *
          doctest::test_suite("slow")) {
  const train::Job job =
      job_with({"data.train_rows=8", "train.lr=1e-2", "train.epochs=40", "model.fold=8"});
  const test::TempDir temp;
  test::train_in(temp.path(), job);
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  const auto rows = job.splits().stream(task::Split::kTrain, {});
  CHECK(evaluator.run(*rows).at("image_r1") < 60);
  const auto path = test::step_file(temp.path(), 40);
  train::load_variables(io::read_safetensors(path), path, variables);
  CHECK(evaluator.run(*rows).at("image_r1") > 90);
}

TEST_CASE("order_embeddings: refusals") {
  const auto refused = [](const char* setting, std::string_view part) {
    test::check_refused([&] { job_with({setting}); }, "model.", part);
  };
  refused("model.error=cosine", "error: expected order or symmetric, got 'cosine'");
  refused("model.margin=0", "margin: expected in (0, 1000], got 0");
  refused("model.fold=0", "fold: expected 1 to 1000000, got 0");
  refused("model.features=pixels", "features: expected files or synthetic, got 'pixels'");
  refused("model.norm=layernrm", "nearest: 'layernorm'");
  refused("model.width=0", "width: expected 1 to 65536, got 0");
}

}  // namespace
}  // namespace keel::models
