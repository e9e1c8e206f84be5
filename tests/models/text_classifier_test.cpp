// The Transformer that classifies sentences: padding, gradients, norms and refusals.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "backends/backends.h"
#include "models/text_classifier/model.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

constexpr const char* kModel = "text_classifier";

train::Job job_with(Settings settings) {
  settings.push_back("model.dropout=0");
  return small_job(settings, kModel);
}

// Logits of the first rows, and the gradient of the loss by the embedding of their words, when rows
// of words are padded to `length` and rows of padding fill up `rows`.
struct Padded {
  Tensor logits, table;

  Padded(const std::string& backend_name, const train::Job& job, std::int64_t rows,
         std::int64_t length) {
    constexpr std::int64_t kRows = 3;
    const std::int64_t words[kRows] = {5, 2, 7};
    const auto backend = make_backend(backend_name);
    Graph g;
    nn::Net net{.graph = g};
    const task::Inputs in = train::add_inputs(g, job.network(), {rows, length});
    const task::Outputs outputs = job.network().build(net, in);
    const Value table = g.find_leaf("embedding");
    g.mark_output("logits", outputs.predictions[0].value);
    g.mark_output("table", gradient(g, outputs.loss_sum, {{table}})[0]);
    Variables variables(*backend, 5);
    Program program(*backend, variables, g);
    Tensor tokens(DType::kI32, {rows, length}), mask(DType::kU8, {rows, length}),
        label(DType::kI32, {rows});
    for (std::int64_t r = 0; r < rows; ++r) {
      label.as<std::int32_t>()[std::size_t(r)] = r < kRows ? std::int32_t(r % 2) : -1;
      for (std::int64_t i = 0; r < kRows && i < words[r]; ++i) {
        tokens.as<std::int32_t>()[std::size_t(r * length + i)] = std::int32_t(2 + (3 * r + i) % 9);
        mask.as<std::uint8_t>()[std::size_t(r * length + i)] = 1;
      }
    }
    program.feed("tokens", tokens);
    program.feed("mask", mask);
    program.feed("label", label);
    program.run();
    logits = Tensor(DType::kF64, {kRows, 2});
    const Tensor all = program.fetch("logits");
    for (std::int64_t e = 0; e < 2 * kRows; ++e) logits.as<double>()[std::size_t(e)] = all.at(e);
    this->table = program.fetch("table");
  }
};

double largest(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (std::int64_t e = 0; e < a.elements(); ++e)
    most = std::max(most, std::abs(a.at(e) - b.at(e)));
  return most;
}

TEST_CASE("text_classifier: padding changes no bit of a sentence's logits with norms of a row") {
  for (const char* norm : {"none", "layernorm", "adanorm", "detachnorm", "rmsnorm"}) {
    CAPTURE(std::string(norm));
    const train::Job job = job_with({std::string("model.norm=") + norm, "model.layers=2"});
    const Padded tight(default_backend(), job, 3, 8), wide(default_backend(), job, 3, 24),
        tall(default_backend(), job, 7, 16);
    for (const Padded* other : {&wide, &tall}) {
      CHECK(std::memcmp(tight.logits.data(), other->logits.data(),
                        std::size_t(tight.logits.bytes())) == 0);
      CHECK(largest(tight.table, other->table) < 1e-5);
    }
  }
}

TEST_CASE("text_classifier: padding does not matter to norms over the batch, to rounding") {
  for (const char* norm : {"batchnorm", "powernorm", "pn_v", "mabn"}) {
    CAPTURE(std::string(norm));
    const train::Job job = job_with({std::string("model.norm=") + norm});
    const Padded tight("reference", job, 3, 8), padded("reference", job, 7, 24);
    CHECK(largest(tight.logits, padded.logits) < 1e-12);
    CHECK(largest(tight.table, padded.table) < 1e-11);
  }
}

TEST_CASE("text_classifier: padding does not matter to a norm over the batch at any place") {
  for (const nn::PlacementFacts& facts : nn::kPlacements) {
    CAPTURE(std::string(facts.name));
    const train::Job job = job_with(
        {"model.norm=batchnorm", "model.layers=2", fmt::format("model.place={}", facts.name)});
    const Padded tight("reference", job, 3, 8), padded("reference", job, 7, 24);
    CHECK(largest(tight.logits, padded.logits) < 1e-10);
    CHECK(largest(tight.table, padded.table) < 1e-9);
  }
}

TEST_CASE("text_classifier: every placement trains" * doctest::test_suite("slow")) {
  for (const nn::PlacementFacts& facts : nn::kPlacements) {
    CAPTURE(std::string(facts.name));
    const LossChange loss =
        train_rows(job_with({"model.layers=2", fmt::format("model.place={}", facts.name)}), 8, 30);
    CHECK(loss.last < loss.first);
  }
}

TEST_CASE("text_classifier: placements whose authors have a norm after the last layer have one") {
  for (const nn::PlacementFacts& facts : nn::kPlacements) {
    CAPTURE(std::string(facts.name));
    const train::Job job = job_with({fmt::format("model.place={}", facts.name)});
    const std::vector<std::string> names =
        names_of(train::build_evaluate(job, {2, 8}), NodeKind::kParameter);
    const bool has = std::ranges::find(names, "norm/gain") != names.end();
    CHECK(has == facts.final_norm);
  }
}

TEST_CASE("text_classifier: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  check_gradients(job_with({"model.norm=layernorm"}), 4);
}

// The values that drop out in a training step, by name.
std::vector<std::string> dropped_in(const train::Job& job) {
  const Graph g = train::build_step(job);
  std::vector<std::string> names;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind == NodeKind::kOp && node.op->name == "dropout") names.push_back(node.name);
  }
  return names;
}

TEST_CASE("text_classifier: the hidden units of every feed-forward layer drop out") {
  CHECK(dropped_in(job_with({"model.layers=2"})).empty());
  const auto names = dropped_in(job_with({"model.layers=2", "model.relu_dropout=0.2"}));
  REQUIRE(names.size() == 2);
  CHECK(names[0].starts_with("encoder1/feed_forward/"));
  CHECK(names[1].starts_with("encoder2/feed_forward/"));
}

TEST_CASE("text_classifier: refusals") {
  const auto refused = [](const char* setting, std::string_view part) {
    test::check_refused([&] { small_job({setting}, kModel); }, "model.", part);
  };
  refused("model.task=mr", "task: 'mr' is unknown");
  refused("model.heads=3", "heads: expected a divisor of the width, got 3");
  refused("model.norm=layernrm", "nearest: 'layernorm'");
  refused("model.dropout=1", "dropout: expected in [0, 1), got 1");
  refused("model.relu_dropout=1", "relu_dropout: expected in [0, 1), got 1");
  refused("model.place=middle",
          "place: expected pre, post, peri, sub, hybrid, olmo, lns, deepnorm, rezero, "
          "scaled_post, simple or ngpt, got 'middle'");
}

TEST_CASE("text_classifier: width and heads are judged together, in either order") {
  CHECK_NOTHROW(small_job({"model.width=24", "model.heads=6"}, kModel));
  CHECK_NOTHROW(small_job({"model.heads=6", "model.width=24"}, kModel));
}

}  // namespace
}  // namespace keel::models
