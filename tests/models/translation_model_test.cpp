// The translation model: what it learns it says, and a translation is the sentence's own.
#include <doctest/doctest.h>

#include "tests/models/translation_runs.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("translation: pairs that were learned by heart are translated word by word") {
  for (const char* beam : {"model.beam=1", "model.beam=4"}) {
    CAPTURE(beam);
    Learned learned({beam});
    REQUIRE(learned.loss < 0.2);
    CHECK(learned.translate(learned.pairs.source) == learned.pairs.target);
  }
}

TEST_CASE("translation: a sentence has the same translation alone and among others") {
  Learned learned({"model.beam=3"});
  Lines lines = learned.pairs.source;
  lines.insert(lines.begin() + 2, "");
  lines.push_back("s1 s2 never-seen s3");
  lines.push_back("s5");
  const Lines together = learned.translate(lines);
  REQUIRE(together.size() == lines.size());
  CHECK(together[2].empty());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    CHECK(learned.translate({lines[i]})[0] == together[i]);
  }
  CHECK(learned.translate({}).empty());
  CHECK(learned.translate({"", ""}) == Lines{"", ""});
}

TEST_CASE("translation: every norm, site, place and initialisation builds a network that runs") {
  const auto backend = make_backend("reference");
  for (const Settings& settings : {Settings{"model.norm=powernorm", "model.sites=encoder"},
                                   {"model.norm=batchnorm"},
                                   {"model.norm=none", "model.sites=final"},
                                   {"model.place=post"},
                                   {"model.init=kaiming"},
                                   {"model.init=x19_release"},
                                   {"model.embeddings=target"},
                                   {"model.embeddings=none"},
                                   {"model.joint=false", "model.embeddings=target"},
                                   {"model.merges=50"}}) {
    CAPTURE(settings[0]);
    const train::Config config = small_config(settings, "translation");
    Variables variables(*backend, 1);
    train::Evaluator evaluator(*backend, variables, config);
    const auto stream =
        config.model().load(config.data().request())->stream(task::Split::kTest, {.batch = 512});
    const train::Evaluation evaluation = evaluator.run(*stream);
    CHECK(std::isfinite(evaluation.loss));
    CHECK(evaluation.rows == 12);
    CHECK(evaluation.decoded->answers == 12);
    CHECK(evaluation.at("bleu") >= 0);
  }
}

TEST_CASE("translation: the parameters of the networks of the papers") {
  // Shen et al. 2020, table 1: 31.55 M in the two stacks, and 5.20 M of 10,152 symbols.
  train::Config config(std::make_unique<Translation>());
  Graph g;
  nn::Net net{.graph = g};
  net.tick = g.input("tick", {DType::kI32, {}});
  net.first_row = g.input("first_row", {DType::kI32, {}});
  config.model().build(net, train::add_inputs(g, config.model(), config.model().sizes(64)));
  const std::int64_t table = 8 * 512;
  CHECK(count_parameters(g) - table == 31545344);
}

TEST_CASE("translation: options that do not fit are refused") {
  const auto refused = [](const Settings& settings, const char* part) {
    test::check_refused([&] { small_config(settings, "translation"); }, "model.", part);
  };
  refused({"model.joint=false"}, "embeddings: expected target or none");
  refused({"model.heads=3"}, "heads: expected a divisor of the width");
  refused({"model.beam=0"}, "beam: expected 1 to 1000, got 0");
  refused({"model.label_smoothing=1"}, "label_smoothing: expected in [0, 1)");
  refused({"model.sites=some"}, "expected all, encoder or final, got 'some'");
}

}  // namespace
}  // namespace keel::models
