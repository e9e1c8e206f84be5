// SimpleNorm and nGPT as placements of the small Llama.
#include "tests/models/llama_run.h"

namespace keel::models {
namespace {

TEST_CASE("char_lm llama: SimpleNorm has a norm after every linear map, and one at the end") {
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kSimple;
  Names norms, expected{"norm/gain"};
  for (const std::string& name : parameters_of_llama(options)) {
    if (name.ends_with("/gain")) norms.insert(name);
  }
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* map : {"attention/q", "attention/k", "attention/v", "attention/out",
                            "feed_forward/gate", "feed_forward/up", "feed_forward/down"}) {
      expected.insert(layer + map + "/norm/gain");
    }
  }
  CHECK(norms == expected);
}

TEST_CASE("char_lm llama: nGPT has scales in place of norms, and weights of length 1") {
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kNgpt;
  Names scales, expected{"softmax_scale"};
  const Graph g = graph_of(options);
  for (const Value leaf : g.leaves(NodeKind::kParameter)) {
    const Node& node = g.node(leaf);
    if (g.shape(leaf).rank() == 1) scales.insert(node.name);
    if (g.shape(leaf).rank() == 1) continue;
    const bool ends_in_width = g.shape(leaf)[1] == 16 && !node.name.ends_with("/q/weight");
    CAPTURE(node.name);
    CHECK(node.facts.unit == (ends_in_width ? UnitVectors::kRows : UnitVectors::kColumns));
  }
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* scale : {"attention/alpha", "attention/qk_scale", "feed_forward/alpha",
                              "feed_forward/gate_scale", "feed_forward/up_scale"}) {
      expected.insert(layer + scale);
    }
  }
  CHECK(scales == expected);
}

TEST_CASE("char_lm llama: the weights of nGPT have length 1 at first, and its states too") {
  const auto backend = make_backend("reference");
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kNgpt;
  LlamaRun run(*backend, options);
  const Segment segment{1, 6, some_symbols(6)};
  const Tensor logits = run.logits(segment);
  for (const std::string& name : parameters_of_llama(options)) {
    const Tensor w = run.variables().read(name).to(DType::kF64);
    if (w.shape().rank() != 2) continue;
    CAPTURE(name);
    double squares = 0;
    for (const double v : w.as<double>()) squares += v * v;
    // 16 is the width of the network: all vectors of 16 numbers have length 1.
    CHECK(squares == doctest::Approx(double(w.elements()) / 16).epsilon(1e-6));
  }
  // States of length 1 and weights of length 1 give cosines.
  for (const double logit : logits.to(DType::kF64).as<double>()) CHECK(std::abs(logit) <= 1);
}

TEST_CASE("char_lm llama: every update brings the weights of nGPT back to length 1") {
  const train::Job job = llama_job({"model.place=ngpt", "train.optimizer=adam", "train.lr=0.1"});
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  test::Rows(job).feed(step, first_rows(job.train().batch));
  step.feed("lr", Tensor::scalar(float(job.train().lr)));
  const auto squares_of = [&](const std::string& name) {
    const Tensor w = variables.read(name).to(DType::kF64);
    std::map<std::int64_t, double> squares;  // of every row of the table
    for (std::int64_t e = 0; e < w.elements(); ++e) {
      squares[e / w.shape()[1]] += w.at(e) * w.at(e);
    }
    return squares;
  };
  for (int i = 0; i < 3; ++i) {
    const Tensor before = i > 0 ? variables.read("embedding/table") : Tensor{};
    step.feed("step", Tensor::of<std::int32_t>({}, {i}));
    step.run();
    for (const auto& [row, squares] : squares_of("embedding/table")) {
      CHECK(squares == doctest::Approx(1).epsilon(1e-5));
    }
    if (i > 0) CHECK(before.at(0) != variables.read("embedding/table").at(0));
  }
}

}  // namespace
}  // namespace keel::models
