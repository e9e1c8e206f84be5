// Products that an evaluation of the parser keeps, of the first layer's weight with rows of the
// table: they are computed again from the weights of the moment, and never saved.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/inputs.h"
#include "tests/models/helpers.h"

namespace keel::models {
namespace {

train::Job job_with(Settings settings) { return small_job(settings, "dependency_parser"); }

std::unique_ptr<task::Stream> rows_of(const train::Job& job, std::int64_t batch) {
  return job.splits().stream(task::Split::kTest, {.batch = batch, .shuffle = {}});
}

// Logits of the first rows, without what an evaluation keeps and with it.
struct Logits {
  Tensor plain, kept;
};

Logits logits_of(Backend& backend, const train::Job& job) {
  const auto stream = rows_of(job, 32);
  const task::Batch& batch = stream->at(0, 0);
  Variables variables(backend, 3);
  Tensor results[2];
  for (const nn::Kept kept : {nn::Kept::kNothing, nn::Kept::kRead}) {
    if (kept == nn::Kept::kRead) Program(backend, variables, train::build_keep(job)).run();
    Program program(backend, variables, train::build_evaluate(job, batch.sizes, kept));
    train::Feeder(job.network()).feed(program, batch);
    program.run();
    results[kept == nn::Kept::kRead] =
        program.fetch(std::string(train::kPrediction) + "logits", true);
  }
  return {std::move(results[0]), std::move(results[1])};
}

void check_same_logits(const train::Job& job) {
  const auto backend = make_backend("reference");
  const Logits logits = logits_of(*backend, job);
  REQUIRE(logits.plain.shape() == logits.kept.shape());
  double largest = 0;
  for (std::int64_t i = 0; i < logits.plain.elements(); ++i) {
    if (logits.plain.at(i) < -1e8) continue;  // not legal
    largest = std::max(largest, std::abs(logits.plain.at(i)));
    CHECK(logits.kept.at(i) == doctest::Approx(logits.plain.at(i)).epsilon(1e-10));
  }
  CHECK(largest > 1e-3);
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (int i = 0; i < graph.size(); ++i) {
    found += graph.node(i).op != nullptr && graph.node(i).op->name == op;
  }
  return found;
}

TEST_CASE("dependency_parser: what is looked up is what the first layer gives, for every norm") {
  for (const char* norm :
       {"none", "layernorm", "adanorm", "weightnorm", "batchnorm", "powernorm"}) {
    CAPTURE(std::string(norm));
    check_same_logits(job_with({std::string("model.norm=") + norm}));
  }
  check_same_logits(job_with(
      {"model.layers=2", "model.norm=none", "model.activation=cube", "model.embedding_range=1"}));
}

TEST_CASE("dependency_parser: a part with too many rows is multiplied as ever" *
          doctest::test_suite("slow")) {
  const train::Job small = job_with({}),
                   wide = job_with({"model.hidden=20000", "model.embedding=1", "model.layers=2",
                                    "model.embedding_range=10"});
  CHECK(count(train::build_evaluate(small, {4}, nn::Kept::kRead), "embedding_bag") == 3);
  CHECK(count(train::build_evaluate(wide, {4}, nn::Kept::kRead), "embedding_bag") == 2);
  CHECK(count(train::build_evaluate(small, {4}), "embedding_bag") == 0);
  CHECK(count(train::build_step(small), "embedding_bag") == 0);
  check_same_logits(wide);
}

TEST_CASE("dependency_parser: in float32 trees and labels are those of the plain network") {
  // Sums of 48 * 4 products in another order: within 4 (48 * 4) eps of each, through two layers
  // whose norms bring them back to 1.
  constexpr double kBound = 2 * 4 * 48 * 4 * 0x1p-24;
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const Logits logits = logits_of(*backend, job_with({"model.embedding_range=1"}));
  for (std::int64_t i = 0; i < logits.plain.elements(); ++i) {
    CHECK(std::abs(logits.kept.at(i) - logits.plain.at(i)) <= kBound);
  }
}

TEST_CASE("dependency_parser: with a network, sentences together have the trees of each alone") {
  const auto backend = make_backend(default_backend(), {.threads = 2});
  const train::Job job = job_with({"model.embedding_range=1"});
  Variables variables(*backend, 3);
  train::Evaluator evaluator(*backend, variables, job);
  const auto answers = [&](std::int64_t batch) {
    const auto decoder = rows_of(job, batch)->decoder();
    evaluator.decode(*decoder);
    return decoder->answers();
  };
  const std::vector<std::string> alone = answers(1);
  REQUIRE(alone.size() == 21);
  for (const std::int64_t batch : {2, 7, 20, 64}) CHECK(answers(batch) == alone);
}

TEST_CASE("dependency_parser: an evaluation is of the weights of the moment") {
  const auto backend = make_backend("reference");
  const train::Job job = job_with({});
  Variables variables(*backend, 3), others(*backend, 4);
  train::Evaluator evaluator(*backend, variables, job), fresh(*backend, others, job);
  const auto stream = rows_of(job, 8);
  const double before = evaluator.run(*stream).loss, expected = fresh.run(*stream).loss;
  CHECK(before != expected);
  for (const auto& [name, variable] : others.all()) {
    if (!variable.is_cached) variables.write(name, others.read(name, true));
  }
  CHECK(evaluator.run(*stream).loss == expected);
  const auto decoder = stream->decoder(), again = stream->decoder();
  evaluator.decode(*decoder);
  fresh.decode(*again);
  CHECK(decoder->answers() == again->answers());
}

TEST_CASE("dependency_parser: padding looks up what a missing node does") {
  const Symbols symbols(job_with({}).network().assets());
  task::Batch batch;
  clear_configurations(batch, 3, symbols);
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  for (const FeaturePart& part : symbols.parts()) {
    CHECK(part.none >= part.row);
    CHECK(part.none < part.row + part.rows);
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t k = 0; k < part.columns; ++k) {
        const std::int64_t place = row * std::int64_t(kFeatures) + part.column + k;
        CHECK(features[std::size_t(place)] == part.none);
      }
    }
  }
}

TEST_CASE("dependency_parser: a checkpoint has the weights alone") {
  const auto backend = make_backend(default_backend());
  const train::Job job = job_with({});
  Variables variables(*backend, 3);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  evaluator.run(*rows_of(job, 8));
  CHECK(variables.all().at("products0").is_cached);
  const io::TensorFile file = train::to_checkpoint({}, job, variables);
  CHECK(file.tensors.contains("fc1/weight"));
  for (const auto& [name, tensor] : file.tensors) CHECK_FALSE(name.starts_with("products"));
  train::load_variables(file, "here", variables);
}

}  // namespace
}  // namespace keel::models
