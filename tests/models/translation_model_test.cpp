// The translation model: what it learns it says, and a translation is the sentence's own.
#include <doctest/doctest.h>

#include "tests/models/translation_runs.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("translation: pairs that were learned by heart are translated word by word" *
          doctest::test_suite("slow")) {
  for (const char* beam : {"model.beam=1", "model.beam=4"}) {
    CAPTURE(beam);
    Learned learned({beam});
    REQUIRE(learned.loss < 0.2);
    CHECK(learned.translate(learned.pairs.source) == learned.pairs.target);
  }
}

TEST_CASE("translation: what checkpoints keep says which form lines have") {
  const auto form = [](const Settings& settings) {
    return small_job(settings, "translation").network().assets().at("form");
  };
  CHECK(form({}) == "raw de en lower");
  CHECK(form({"data.source=builtin", "data.train_rows=60"}) == "tokens");
}

TEST_CASE("translation: a sentence has the same translation alone and among others" *
          doctest::test_suite("slow")) {
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

TEST_CASE("translation: every norm, site, place and initialisation builds a network that runs" *
          doctest::test_suite("slow")) {
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
    const train::Job job = small_job(settings, "translation");
    Variables variables(*backend, 1);
    train::Evaluator evaluator(*backend, variables, job);
    const auto stream = job.splits().stream(task::Split::kTest, {.batch = 512});
    const train::Evaluation evaluation = evaluator.run(*stream);
    CHECK(std::isfinite(evaluation.loss));
    CHECK(evaluation.rows == 12);
    CHECK(evaluation.decoded->answers == 12);
    CHECK(evaluation.at("bleu") >= 0);
  }
}

TEST_CASE("translation: every placement trains" * doctest::test_suite("slow")) {
  for (const nn::PlacementFacts& facts : nn::kPlacements) {
    CAPTURE(std::string(facts.name));
    const train::Job job =
        small_job({fmt::format("model.place={}", facts.name), "model.layers=2", "model.dropout=0",
                   "model.attention_dropout=0", "model.relu_dropout=0"},
                  "translation");
    const LossChange loss = train_rows(job, 8, 30);
    CHECK(loss.last < loss.first);
  }
}

TEST_CASE("translation: deepnorm has factors of its own for each stack") {
  const Graph g = train::build_evaluate(
      small_job({"model.place=deepnorm", "model.layers=2"}, "translation"), {2, 8, 8});
  std::map<std::string, std::vector<double>> factors;  // of x, by stack
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind != NodeKind::kOp || node.op->name != "scale") continue;
    factors[node.name.substr(0, 7)].push_back(node.attrs.as<ScaleAttrs>().factor);
  }
  const auto check_factors = [&](const char* stack, std::size_t branches, double expected) {
    REQUIRE(factors[stack].size() == branches);
    for (const double factor : factors[stack]) CHECK(factor == doctest::Approx(expected));
  };
  check_factors("encoder", 4, 0.81 * std::pow(32, 1.0 / 16));
  check_factors("decoder", 6, std::pow(6, 0.25));
}

// The norms of a network of two layers by their places: "encoder1/attention/norm: rms_norm".
std::map<std::string, std::string> norms_of(Settings settings) {
  settings.insert(settings.end(), {"model.layers=2", "model.norm=rmsnorm"});
  const auto backend = make_backend("reference");
  const train::Job job = small_job(settings, "translation");
  const Graph g = train::build_evaluate(job, {2, 8, 8});
  std::map<std::string, std::string> norms;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.kind == NodeKind::kOp && node.name.find("norm") != std::string::npos) {
      norms.emplace(node.name.substr(0, node.name.rfind('/')), std::string(node.op->name));
    }
  }
  return norms;
}

TEST_CASE("translation: which norms are of the kind that is asked for") {
  const auto count = [](const std::map<std::string, std::string>& norms, std::string_view op,
                        std::string_view where) {
    return std::ranges::count_if(norms, [&](const auto& norm) {
      return norm.second == op && norm.first.starts_with(where);
    });
  };
  const auto all = norms_of({});
  CHECK(count(all, "rms_norm", "") == 2 * 2 + 1 + 2 * 3 + 1);
  CHECK(count(all, "layer_norm", "") == 0);
  const auto encoder = norms_of({"model.sites=encoder"});
  CHECK(count(encoder, "rms_norm", "encoder") == 5);
  CHECK(count(encoder, "layer_norm", "decoder") == 7);
  const auto last = norms_of({"model.sites=final"});
  CHECK(count(last, "rms_norm", "") == 2);
  CHECK(last.at("encoder/norm") == "rms_norm");
  CHECK(last.at("decoder/norm") == "rms_norm");
  const auto inside = norms_of({"model.sites=encoder", "model.place=hybrid"});
  CHECK(count(inside, "rms_norm", "encoder") == 2 * 4 + 1);
  CHECK(count(inside, "layer_norm", "decoder") == 2 * 7 + 1);
  CHECK(norms_of({"model.place=rezero"}).empty());
  const auto other = norms_of({"model.sites=encoder", "model.final_norm=scalenorm"});
  CHECK(other.at("encoder/norm") == "scale_norm");
  CHECK(other.at("decoder/norm") == "layer_norm");
  CHECK(count(other, "rms_norm", "encoder") == 4);
}

TEST_CASE("translation: a scaling stands before the norms that it is for") {
  const auto scalings = [](Settings settings) {
    settings.insert(settings.end(), {"model.layers=1", "model.scaling=layerscaling"});
    const Graph g = train::build_evaluate(small_job(settings, "translation"), {2, 8, 8});
    int count = 0;
    for (int i = 0; i < g.size(); ++i) {
      const Node& node = g.node(i);
      count += node.kind == NodeKind::kOp && node.op->name == "group_scaling";
    }
    return count;
  };
  const std::string some = "model.scaled_norms=batchnorm,pn_v", encoder = "model.sites=encoder";
  CHECK(scalings({encoder, "model.norm=layernorm"}) == 3);
  CHECK(scalings({encoder, some, "model.norm=layernorm"}) == 0);
  CHECK(scalings({encoder, some, "model.norm=batchnorm{keep=0.95}"}) == 3);
  CHECK(scalings({encoder, some, "model.norm=pn_v"}) == 3);
  CHECK(scalings({encoder, some, "model.norm=layernorm", "model.final_norm=pn_v"}) == 1);
}

TEST_CASE("translation: bounds of first weights by their initialisation") {
  struct Bounds {
    const char* init;
    double query, out, feed_forward, bias;
  };
  const double width = 16, hidden = 32;  // of the small network
  const double xavier = std::sqrt(6 / (2 * width)), fan_in = 1 / std::sqrt(width),
               to_hidden = std::sqrt(6 / (width + hidden));
  for (const Bounds& expected :
       {Bounds{"fairseq", xavier * std::sqrt(0.5), xavier, to_hidden, 1 / std::sqrt(width)},
        Bounds{"kaiming", fan_in, fan_in, fan_in, 0},
        Bounds{"x19_release", fan_in, fan_in, to_hidden, 0}}) {
    CAPTURE(expected.init);
    TranslationRun run({fmt::format("model.init={}", expected.init), "model.width=16",
                        "model.feed_forward=32", "model.heads=2"});
    run.translate({"s1"});
    const auto largest = [&](const std::string& name) {
      const Tensor values = run.variables.read("encoder1/" + name);
      double most = 0;
      for (float v : values.as<float>()) most = std::max(most, std::abs(double(v)));
      return most;
    };
    const auto within = [&](const std::string& name, double bound) {
      CAPTURE(name);
      CHECK(largest(name) <= bound * (1 + 1e-6));
      CHECK(largest(name) >= 0.9 * bound);
    };
    within("attention/q/weight", expected.query);
    within("attention/out/weight", expected.out);
    within("feed_forward/1/weight", expected.feed_forward);
    CHECK(largest("attention/q/bias") <= expected.bias);
    CHECK(largest("attention/out/bias") == 0);
  }
}

TEST_CASE("translation: the parameters of the networks of the papers") {
  // Shen et al. 2020, table 1: 31.55 M in the two stacks, and 5.20 M of 10,152 symbols.
  const Subwords few = Subwords::learn({}, {});
  const auto subwords = std::make_shared<const Subwords>(few);
  const TranslationNetwork network({}, {subwords, subwords}, std::nullopt);
  Graph g;
  nn::Net net{.graph = g};
  net.step = g.input("step", {DType::kI32, {}});
  net.first_row = g.input("first_row", {DType::kI32, {}});
  network.build(net, train::add_inputs(g, network, network.sizes(64)));
  const std::int64_t table = few.dictionary().size() * 512;
  CHECK(count_parameters(g) - table == 31545344);
}

TEST_CASE("translation: options that do not fit are refused") {
  const auto refused = [](const Settings& settings, const char* part) {
    test::check_refused([&] { small_job(settings, "translation"); }, "model.", part);
  };
  refused({"model.joint=false"}, "embeddings: expected target or none");
  refused({"model.heads=3"}, "heads: expected a divisor of the width");
  refused({"model.beam=0"}, "beam: expected 1 to 1000, got 0");
  refused({"model.most_ratio=0.5"}, "most_ratio: expected 0, or 1 or more, got 0.5");
  refused({"model.target_symbols=9"}, "target_symbols: expected 0, for the languages share");
  refused({"model.scaled_norms=batchnrm"}, "nearest: 'batchnorm'");
  refused({"model.scaled_norms=pn_v"}, "scaled_norms: expected a scaling to be given, too");
  refused({"model.scaling=layerscaling", "model.scaled_norms=batchnorm{keep=0.95}"},
          "scaled_norms: expected names of norms without options");
  refused({"model.label_smoothing=1"}, "label_smoothing: expected in [0, 1)");
  refused({"model.sites=some"}, "expected all, encoder or final, got 'some'");
}

}  // namespace
}  // namespace keel::models
