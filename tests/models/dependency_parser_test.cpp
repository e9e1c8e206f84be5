// The parser's network: its size, gradients, what is not legal, and whole runs.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "backends/backends.h"
#include "frontend/train/evaluator.h"
#include "models/dependency_parser/builtin.h"
#include "models/dependency_parser/inputs.h"
#include "models/dependency_parser/model.h"
#include "src/ops/softmax.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thoroughness.h"

namespace keel::models {
namespace {

constexpr const char* kParser = "dependency_parser";

train::Job parser_job(Settings settings) { return small_job(settings, kParser); }

TEST_CASE("dependency_parser: number of parameters") {
  // 9 labels; the rows of the table as Symbols counts them.
  const auto count = [](const Settings& settings) {
    return count_parameters(train::build_evaluate(parser_job(settings), {4}));
  };
  const std::int64_t rows =
      train::build_evaluate(parser_job({}), {4})
          .shape(train::build_evaluate(parser_job({}), {4}).find_leaf("embedding"))[0];
  const std::int64_t first = 48 * 4 * 16, second = 16 * 16, last = 16 * 19 + 19;
  CHECK(count({"model.norm=none"}) == rows * 4 + first + 16 + second + 16 + last);
  CHECK(count({}) == rows * 4 + first + 2 * 16 + second + 2 * 16 + last);  // gain and bias
  CHECK(count({"model.layers=2"}) == rows * 4 + first + 2 * 16 + last);
}

TEST_CASE("dependency_parser: first values are uniform, of the embedding within 0.01") {
  const auto largest_of = [](const Settings& settings, const std::string& name) {
    const auto backend = make_backend("reference");
    Variables variables(*backend, 1);
    variables.declare(train::build_evaluate(parser_job(settings), {4}));
    const Tensor value = variables.read(name);
    double largest = 0;
    for (std::int64_t e = 0; e < value.elements(); ++e) {
      largest = std::max(largest, std::abs(value.at(e)));
    }
    return largest;
  };
  const auto is_within = [&](double largest, double bound) {
    CHECK(largest <= bound * (1 + 1e-6));
    CHECK(largest > 0.98 * bound);
  };
  is_within(largest_of({}, "embedding"), 0.01);
  is_within(largest_of({"model.embedding_range=0.5"}, "embedding"), 0.5);
  is_within(largest_of({}, "fc1/weight"), std::sqrt(6.0 / (48 * 4 + 16)));
  is_within(largest_of({}, "logits/weight"), std::sqrt(6.0 / (16 + 19)));
  is_within(largest_of({"model.init=uniform"}, "fc1/weight"), 0.01);
  CHECK(largest_of({}, "logits/bias") == 0);
}

TEST_CASE(
    "dependency_parser: every parameter has a gradient but a bias that batch norm takes away") {
  const std::vector<std::pair<std::string, std::set<std::string>>> rows{
      {"none", {}},       {"layernorm", {}},        {"adanorm", {}},    {"powernorm", {}},
      {"weightnorm", {}}, {"layernorm_simple", {}}, {"detachnorm", {}}, {"batchnorm", {}}};
  for (const auto& [norm, idle] : rows) {
    CAPTURE(norm);
    // Steps are large enough for the smallest gradients to be told from none.
    CHECK(idle_parameters(parser_job(
              {"model.norm=" + norm, "model.dropout=0", "model.input_dropout=0"})) == idle);
  }
}

// The gradient of every parameter where its slope is largest, by central differences in float64.
void check_gradient(const Settings& settings) {
  const train::Job job = parser_job(settings);
  const auto backend = make_backend("reference");
  Graph g;
  nn::Net net{.graph = g, .dtype = DType::kF64};
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const std::vector<std::int64_t> picked{2, 5, 9, 14, 20, 21, 33, 40};
  const task::Batch& batch = stream->pick(picked);
  const task::Outputs outputs =
      job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
  g.mark_output("loss", outputs.loss_sum);
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  const std::vector<Value> gradients =
      gradient(g, outputs.loss_sum, g.leaves(NodeKind::kParameter));
  for (std::size_t i = 0; i < names.size(); ++i) g.mark_output("d " + names[i], gradients[i]);
  Variables variables(*backend, 1);
  Program program(*backend, variables, g);
  train::Feeder(job.network()).feed(program, batch);
  program.run();
  std::map<std::string, Tensor> all;  // before any weight moves
  for (const std::string& name : names) all[name] = program.fetch("d " + name);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Tensor& d = all.at(name);
    const Tensor value = variables.read(name, true);
    std::int64_t at = 0;
    for (std::int64_t e = 0; e < d.elements(); ++e) {
      if (std::abs(d.at(e)) > std::abs(d.at(at))) at = e;
    }
    const auto loss_at = [&](double step) {
      Tensor moved = value.clone();
      moved.as<double>()[std::size_t(at)] += step;
      variables.write(name, moved);
      program.run();
      return program.scalar("loss");
    };
    // A step of 1e-6 leaves 1e-9 of rounding and crosses no corner of ReLU here.
    const double slope = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
    variables.write(name, value);
    CHECK(d.at(at) == doctest::Approx(slope).epsilon(1e-6));
  }
}

TEST_CASE("dependency_parser: the gradient of the whole network by central differences") {
  check_gradient({"model.dropout=0", "model.input_dropout=0"});
  // 3 x^2 is the derivative of the cube; larger weights, for that of small ones is near 0.
  check_gradient({"model.dropout=0", "model.input_dropout=0", "model.norm=none", "model.layers=2",
                  "model.activation=cube"});
  check_gradient({"model.dropout=0", "model.input_dropout=0", "model.activation=cube"});
}

TEST_CASE("dependency_parser: what is not legal has probability and gradient 0, exactly") {
  const train::Job job = parser_job({"model.dropout=0", "model.input_dropout=0"});
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  for (const BackendEntry& entry : known_backends()) {
    if (!entry.missing.empty() || entry.name == "null") continue;
    CAPTURE(entry.name);
    const auto backend = make_backend(entry.name);
    std::map<std::int64_t, int> met;  // by how many classes are legal
    for (std::int64_t row = 0; row < 80; ++row) {
      const task::Batch& batch = stream->pick({{row}});
      const auto legal = batch.values[kLegalInput].as<std::uint8_t>();
      const std::int64_t count = std::ranges::count(legal, 1);
      if (++met[count] > 4) continue;
      Graph g;
      nn::Net net{.graph = g};
      const task::Outputs outputs =
          job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
      // With one row the gradient of the last bias is that of the logits.
      const std::vector<Value> bias{g.find_leaf("logits/bias")};
      g.mark_output("dlogits", ops::scale(g, gradient(g, outputs.loss_sum, bias)[0], 1));
      g.mark_output("p", ops::softmax(g, outputs.predictions[0].value));
      Variables variables(*backend, 1);
      Program program(*backend, variables, g);
      train::Feeder(job.network()).feed(program, batch);
      program.run();
      const Tensor p = program.fetch("p"), d = program.fetch("dlogits");
      double sum = 0;
      for (std::size_t k = 0; k < legal.size(); ++k) {
        if (legal[k] != 0) {
          sum += p.at(std::int64_t(k));
        } else {
          CHECK(p.at(std::int64_t(k)) == 0);
          CHECK(d.at(std::int64_t(k)) == 0);
        }
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-6));
      if (count == 1) CHECK(d.at(std::ranges::find(legal, 1) - legal.begin()) == 0);
    }
    // One of nine labels stands only on arcs from ROOT.
    for (const std::int64_t count : {1, 16, 17}) CHECK(met.erase(count) == 1);
    CHECK(met.empty());
  }
}

TEST_CASE("dependency_parser: learns the synthetic sentences, and says how fast it parses" *
          doctest::test_suite("slow")) {
  const bool fast = default_backend() != "reference" && !test::is_emulated();
  if (!fast) return;
  const test::TempDir temp;
  const train::Job job =
      parser_job({"data.source=builtin", "data.train_rows=1000", "train.epochs=2", "train.lr=1e-2",
                  "model.hidden=32", "model.embedding=16"});
  const train::Summary summary = test::train_in(temp / "run", job);
  CHECK(summary.test.at("uas") > 85);
  CHECK(summary.test.at("las") > 85);
  CHECK(summary.test.at("uas_punct") > 85);
  CHECK(summary.test.at("accuracy") > 90);
  REQUIRE(summary.test.decoded.has_value());
  CHECK(summary.test.decoded->answers == 500);
  CHECK(summary.test.decoded->seconds > 0);
}

TEST_CASE("dependency_parser: evaluation parses every sentence, and the search is its decoder's") {
  const auto backend = make_backend(default_backend());
  const train::Job job = parser_job({});
  Variables variables(*backend, 3);
  train::Evaluator evaluator(*backend, variables, job);
  const auto stream = job.splits().stream(task::Split::kTest, {.batch = 8, .shuffle = {}});
  const train::Evaluation e = evaluator.run(*stream);
  CHECK(e.decoded->answers == 21);  // the sentence that is not projective is one of them
  const auto decoder = stream->decoder();
  evaluator.decode(*decoder);
  const auto ratios = decoder->ratios();
  CHECK(e.at("uas") == 100 * ratios.at("uas").sum / ratios.at("uas").count);
  CHECK(ratios.at("uas_punct").count == ratios.at("uas").count + 21);
  CHECK(e.rows == 2 * (std::int64_t(ratios.at("uas_punct").count) - 4));
}

TEST_CASE("dependency_parser: refusals") {
  const auto refused = [](const Settings& settings, std::string_view part) {
    test::check_refused([&] { parser_job(settings); }, "model.", part);
  };
  refused({"model.layers=1"}, "layers: expected 2 to 100, got 1");
  refused({"model.norm=layernrm"}, "nearest: 'layernorm'");
  refused({"model.activation=tanh"}, "activation: expected relu or cube, got 'tanh'");
  refused({"model.init=zeros"}, "init: expected xavier or uniform, got 'zeros'");
  refused({"model.embedding_range=0"}, "embedding_range: expected in (0, 100], got 0");
  refused({"model.dropout=1"}, "dropout: expected in [0, 1), got 1");
  refused({"model.input_dropout=-0.1"}, "input_dropout: expected in [0, 1)");
  refused({"model.min_count=0"}, "min_count: expected >= 1, got 0");
  refused({"model.activation=cube", "model.norm=none"}, "activation: expected relu, a norm, or 2");
  CHECK_NOTHROW(parser_job({"model.activation=cube", "model.norm=none", "model.layers=2"}));
}

}  // namespace
}  // namespace keel::models
