// The small Llama on bytes: what a symbol's loss depends on, heads, memory, and every norm.
#include <cstring>

#include "frontend/train/evaluator.h"
#include "models/char_lm/model.h"
#include "tests/models/llama_run.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("char_lm llama: later symbols change no bit of an earlier symbol's logits") {
  const auto backend = make_backend(default_backend());
  for (const bool qk_norm : {false, true}) {
    LlamaOptions options = small_llama(9);
    options.qk_norm = qk_norm;
    const auto symbols = some_symbols(60);
    for (const std::int64_t from : {1, 17, 39}) {
      auto other = symbols;
      for (std::int64_t i = 20 + from; i < 60; ++i) {
        other[std::size_t(i)] = (other[std::size_t(i)] + 1) % 7;
      }
      LlamaRun a(*backend, options, DType::kF32), b(*backend, options, DType::kF32);
      a.logits({1, 20, part(symbols, 0, 20)});
      b.logits({1, 20, part(symbols, 0, 20)});
      const Tensor x = a.logits({1, 40, part(symbols, 20, 40), false});
      const Tensor y = b.logits({1, 40, part(other, 20, 40), false});
      CHECK(std::memcmp(x.data(), y.data(), std::size_t(from * 7) * sizeof(float)) == 0);
      CHECK(std::memcmp(x.data(), y.data(), std::size_t(x.bytes())) != 0);
    }
  }
}

TEST_CASE("char_lm llama: a text in segments with enough memory is the text in one segment") {
  const auto backend = make_backend("reference");
  const auto symbols = some_symbols(24);
  for (const bool pre : {false, true}) {
    LlamaOptions options = small_llama(32), none = small_llama(0);
    options.layer.place = none.layer.place = pre ? nn::NormPlace::kPre : nn::NormPlace::kPost;
    LlamaRun whole(*backend, none);
    const Tensor expected = whole.logits({1, 24, symbols});
    for (const std::int64_t length : {1, 5, 8}) {
      CAPTURE(length);
      LlamaRun parts(*backend, options);
      for (std::int64_t first = 0; first < 24; first += length) {
        const std::int64_t count = std::min<std::int64_t>(length, 24 - first);
        const Tensor got = parts.logits({1, count, part(symbols, first, count), first == 0});
        for (std::int64_t e = 0; e < got.elements(); ++e) {
          CHECK(got.at(e) == doctest::Approx(expected.at(first * 7 + e)).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("char_lm llama: an empty memory is as none, and a lane that begins anew forgets") {
  const auto backend = make_backend("reference");
  const LlamaOptions none = small_llama(0), some = small_llama(5);
  const auto symbols = some_symbols(8);
  LlamaRun without(*backend, none), with(*backend, some);
  const Segment first{2, 4, symbols}, again{2, 4, symbols, true};
  const Tensor expected = without.logits(first);
  for (int time = 0; time < 2; ++time) test::check_close(with.logits(again), expected, 1e-12);
  const Tensor goes_on = with.logits({2, 4, symbols, false});
  CHECK(std::abs(goes_on.at(3) - expected.at(3)) > 1e-3);
  CHECK(with.carry("filled").at(0) == 5);
  CHECK(with.carry("layer1/attention/keys").shape() == Shape{2, 5, 8});
}

TEST_CASE("char_lm llama: the order of earlier symbols matters, which only the rotation shows") {
  const auto backend = make_backend("reference");
  LlamaOptions options = small_llama();
  options.layers = 1;
  LlamaRun run(*backend, options);
  const Tensor x = run.logits({1, 4, {1, 2, 3, 4}}), y = run.logits({1, 4, {2, 1, 3, 4}});
  double change = 0;
  for (std::int64_t e = 21; e < 28; ++e) change += std::abs(x.at(e) - y.at(e));
  CHECK(change > 1e-4);
}

// W (rows, heads * 4) with the columns of every head twice.
Tensor doubled_heads(const Tensor& w, std::int64_t heads) {
  const std::int64_t rows = w.shape()[0];
  Tensor result(DType::kF64, {rows, 2 * heads * 4});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < 2 * heads * 4; ++c) {
      result.as<double>()[std::size_t(r * 2 * heads * 4 + c)] =
          w.at(r * heads * 4 + c / 8 * 4 + c % 4);
    }
  }
  return result;
}

TEST_CASE("char_lm llama: grouped queries are attention whose heads of keys are repeated") {
  const auto backend = make_backend("reference");
  LlamaOptions grouped = small_llama(), full = small_llama();
  grouped.qk_norm = full.qk_norm = true;
  full.kv_heads = 4;
  LlamaRun few(*backend, grouped), all(*backend, full);
  const Segment segment{2, 6, some_symbols(12)};
  const Tensor expected = few.logits(segment);
  CHECK(std::abs(all.logits(segment).at(80) - expected.at(80)) > 1e-4);
  for (const auto& [name, variable] : few.variables().all()) {
    if (variable.kind != NodeKind::kParameter) continue;
    const Tensor value = few.variables().read(name);
    const bool has_kv_heads = name.ends_with("/k/weight") || name.ends_with("/v/weight");
    all.variables().write(name, has_kv_heads ? doubled_heads(value, 2) : value.clone());
  }
  test::check_close(all.logits(segment), expected, 1e-12);
}

TEST_CASE("char_lm llama: parameters of every layer, with norms of queries and keys when asked") {
  LlamaOptions options = small_llama();
  Names expected{"embedding/table", "norm/gain", "softmax/weight"};
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* name :
         {"attention/norm/gain", "attention/q/weight", "attention/k/weight", "attention/v/weight",
          "attention/out/weight", "feed_forward/norm/gain", "feed_forward/gate/weight",
          "feed_forward/up/weight", "feed_forward/down/weight"}) {
      expected.insert(layer + name);
    }
  }
  CHECK(parameters_of_llama(options) == expected);
  const std::int64_t d = 16, layer = 2 * d * d + 2 * d * 8 + 3 * d * 12 + 2 * d;
  CHECK(count_parameters(graph_of(options)) == 2 * layer + 2 * 7 * d + d);
  options.qk_norm = true;
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* name : {"attention/q_norm/gain", "attention/k_norm/gain"}) {
      expected.insert(layer + name);
    }
  }
  CHECK(parameters_of_llama(options) == expected);
  const Graph g = graph_of(options);
  CHECK(g.shape(g.find_leaf("layer2/attention/k_norm/gain")) == Shape{4});
  options.layer.place = nn::NormPlace::kPost;
  CHECK(!parameters_of_llama(options).contains("norm/gain"));
}

TEST_CASE("char_lm llama: a learned factor of the embeddings begins at the root of the width") {
  const auto backend = make_backend("reference");
  const LlamaOptions without = small_llama();
  LlamaOptions with = small_llama();
  with.embedding_scalar = true;
  CHECK(parameters_of_llama(with).contains("embedding/scalar"));
  LlamaRun plain(*backend, without), scaled(*backend, with);
  const Segment segment{1, 6, some_symbols(6)};
  const Tensor expected = plain.logits(segment);
  scaled.logits(segment);  // makes the parameters
  CHECK(scaled.variables().read("embedding/scalar").at(0) == 4);
  for (const std::string& name : parameters_of_llama(without)) {
    Tensor value = plain.variables().read(name).to(DType::kF64);
    for (double& v : value.as<double>()) v *= name == "embedding/table" ? 0.25 : 1;
    scaled.variables().write(name, value);
  }
  const Tensor got = scaled.logits(segment);
  for (std::int64_t e = 0; e < got.elements(); ++e) {
    CHECK(got.at(e) == doctest::Approx(expected.at(e)).epsilon(1e-6));
  }
}

TEST_CASE("char_lm llama: a norm of queries takes away their scale, head by head") {
  const auto backend = make_backend("reference");
  for (const bool qk_norm : {false, true}) {
    LlamaOptions options = small_llama();
    options.qk_norm = qk_norm;
    LlamaRun run(*backend, options);
    const Segment segment{1, 6, some_symbols(6)};
    const Tensor before = run.logits(segment);
    Tensor w = run.variables().read("layer1/attention/q/weight").to(DType::kF64);
    for (std::int64_t e = 0; e < w.elements(); ++e) {
      if (e % 16 / 4 == 1) w.as<double>()[std::size_t(e)] *= 3;  // of the second head only
    }
    run.variables().write("layer1/attention/q/weight", w);
    const Tensor after = run.logits(segment);
    double change = 0;
    for (std::int64_t e = 0; e < after.elements(); ++e) {
      change = std::max(change, std::abs(after.at(e) - before.at(e)));
    }
    CHECK((change < 1e-3) == qk_norm);  // but for eps
  }
}

TEST_CASE("char_lm llama: every parameter has a gradient") {
  for (const Settings& settings : {Settings{},
                                   {"model.place=post"},
                                   {"model.qk_norm=true", "model.kv_heads=1"},
                                   {"model.norm=powernorm"},
                                   {"model.memory=0"},
                                   {"model.embedding_scalar=true"},
                                   {"model.place=simple"},
                                   {"model.place=ngpt"},
                                   {"model.place=lns"},
                                   {"model.init=kaiming"}}) {
    CAPTURE(settings.empty() ? "" : settings[0]);
    CHECK(idle_parameters(llama_job(Settings{"train.batch=6", "model.init_deviation=0.3"} +
                                    settings)) == Names{});
  }
}

TEST_CASE("char_lm llama: the gradient of the whole network by central differences" *
          doctest::test_suite("slow")) {
  for (const char* setting :
       {"model.qk_norm=false", "model.qk_norm=true", "model.place=simple", "model.place=ngpt"}) {
    CAPTURE(setting);
    check_gradients(
        llama_job({setting, "model.init_deviation=0.3", "model.width=8", "model.kv_heads=1",
                   "model.dropout=0", "model.memory=0"}),  // which would go on from run to run
        3);
  }
}

TEST_CASE("char_lm llama: every norm trains" * doctest::test_suite("slow")) {
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    const nn::Norm norm = nn::Norm::parse(facts.any_width());
    if (!norm.weight_form().is_plain() || facts.name == "instancenorm") continue;
    CAPTURE(facts.name);
    const Settings settings{"model.norm=" + facts.any_width(), "model.layers=1"};
    CHECK(std::isfinite(overfit(llama_job(settings), 2)));
  }
}

// Bits per character of the test part with the weights of one seed.
double bpc_of_llama(int segment, int memory) {
  const auto backend = make_backend("reference");
  const train::Job job = llama_job({"model.init_deviation=0.3", "model.evaluation_lanes=1",
                                    fmt::format("model.evaluation_segment={}", segment),
                                    fmt::format("model.evaluation_memory={}", memory)});
  Variables variables(*backend, 5);
  train::Evaluator evaluator(*backend, variables, job);
  const auto rows = job.splits().stream(task::Split::kTest, train::evaluation_options(job));
  const train::Evaluation e = evaluator.run(*rows);
  CHECK(e.items == 149);  // symbols of the part, but for the first
  return e.at("bpc");
}

TEST_CASE("char_lm llama: an evaluation scores every symbol once, with a memory or without") {
  const double expected = bpc_of_llama(200, 0);
  for (const int segment : {7, 32, 140}) {
    CHECK(bpc_of_llama(segment, 200) == doctest::Approx(expected).epsilon(1e-5));
  }
  CHECK(std::abs(bpc_of_llama(7, 0) - expected) > 1e-4);
}

TEST_CASE("char_lm llama: the network that goes on with a text gives logits of the last symbol") {
  const train::Job job = llama_job({"model.evaluation_memory=0"});
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const task::Sizes sizes{1, 4};
  std::vector<NamedValue> inputs;
  for (const task::Input& input : job.network().search_inputs("next", sizes)) {
    inputs.push_back({input.name, g.input(input.name, input.type)});
  }
  const auto outputs = job.network().build_search(net, "next", sizes, task::Inputs(inputs));
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].name == "logits");
  const auto& network = dynamic_cast<const CharLmNetwork&>(job.network());
  CHECK(g.shape(outputs[0].value) == Shape{1, network.alphabet().size()});
}

TEST_CASE("char_lm llama: refusals of options") {
  const auto refused = [](const Settings& settings, std::string_view text) {
    test::check_refused([&] { llama_job(settings); }, text, "", ErrorKind::kUsage);
  };
  refused({"model.kv_heads=3"}, "model.kv_heads: expected 0 or a divisor of the 2 heads, got 3");
  refused({"model.width=6", "model.heads=2"},
          "model.heads: expected heads of an even number of features, got 3");
  refused({"model.same_length=true"},
          "model.same_length: expected false with architecture = llama, got true");
  refused({"model.clamp=5"}, "model.clamp: expected 0 with architecture = llama, got 5");
  refused({"model.architecture=transformer_xl", "model.qk_norm=true"},
          "model.qk_norm: expected false with architecture = transformer_xl, got true");
  refused({"model.architecture=transformer_xl", "model.embedding_scalar=true"},
          "model.embedding_scalar: expected false with architecture = transformer_xl, got true");
  refused({"model.architecture=transformer_xl", "model.kv_heads=1"},
          "model.kv_heads: expected 0 with architecture = transformer_xl, got 1");
  refused({"model.architecture=gpt"}, "model.architecture");
  refused({"model.architecture=transformer_xl", "model.place=peri"},
          "model.place: expected pre or post with architecture = transformer_xl, got peri");
  refused({"model.place=hybrid"}, "model.place: expected one that leaves attention as it is");
  refused(
      {"model.place=ngpt", "model.qk_norm=true"},
      "model.qk_norm: expected false with place = ngpt, which has lengths of its own, got true");
  CHECK_NOTHROW(llama_job({"model.norm=batchnorm"}));
  LlamaOptions options = small_llama();
  options.kv_heads = 3;
  test::check_refused([&] { graph_of(options); }, "kv_heads: expected a divisor of the 4 heads");
}

}  // namespace
}  // namespace keel::models
