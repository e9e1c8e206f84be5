// The parts of Transformers against their formulas, written out for small sizes.
#include "frontend/nn/transformer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "src/ops/search.h"
#include "src/runtime/program.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"

namespace keel::nn {
namespace {

TEST_CASE("positions: sines, then cosines, of falling rates, counted from two") {
  Graph g;
  Net net{.graph = g, .dtype = DType::kF64};
  const Tensor& table = *g.node(sinusoidal_positions(net, 3, 6)).constant;
  CHECK(table.shape() == Shape{3, 6});
  for (std::int64_t p = 0; p < 3; ++p) {
    for (std::int64_t i = 0; i < 3; ++i) {
      const double rate = std::pow(10000.0, -double(i) / 2);  // 1, 1/100, 1/10000
      CHECK(table.at(6 * p + i) == doctest::Approx(std::sin(double(p + 2) * rate)).epsilon(1e-12));
      CHECK(table.at(6 * p + 3 + i) ==
            doctest::Approx(std::cos(double(p + 2) * rate)).epsilon(1e-12));
    }
  }
  test::check_refused([&] { sinusoidal_positions(net, 3, 5); }, "sinusoidal positions: expected");
  test::check_refused([&] { learned_positions(net, "p", 9, 4, {.longest = 8}); },
                      "p: expected at most 8 positions, got 9");
}

TEST_CASE("positions: learned ones are the first of a table, drawn as widely as asked for") {
  for (const double deviation : {0.02, 0.5}) {
    LayerRun run(
        [&](Net& net, Value x) {
          const Value p =
              learned_positions(net, "p", 3, 50, {.longest = 8, .deviation = deviation});
          return ops::add(net.graph, x, p);
        },
        {3, 50});
    const Tensor table = run.read("p");
    REQUIRE(table.shape() == Shape{8, 50});
    double squares = 0;
    for (std::int64_t e = 0; e < table.elements(); ++e) squares += table.at(e) * table.at(e);
    CHECK(std::sqrt(squares / double(table.elements())) ==
          doctest::Approx(deviation).epsilon(0.15));
  }
}

TEST_CASE("transformer: the masked mean leaves padding out, and is 0 where all is padding") {
  Graph g;
  Net net{.graph = g, .dtype = DType::kF64};
  const Value x = g.input("x", {DType::kF64, {3, 2, 2}}),
              mask = g.input("mask", {DType::kU8, {3, 2}});
  g.mark_output("y", masked_mean(net, x, mask));
  Feeds feeds;
  feeds["x"] = test::f64({3, 2, 2}, {1, 2, 3, 5, 7, 8, 99, 99, 4, 4, 4, 4});
  feeds["mask"] = Tensor::of<std::uint8_t>({3, 2}, {1, 1, 1, 0, 0, 0});
  const auto backend = make_backend("reference");
  test::check_close(run_graph(*backend, g, feeds).at("y"), test::f64({3, 2}, {2, 3.5, 7, 8, 0, 0}),
                    1e-15);
}

// Names of the parameters that a layer makes, and of its norms' inputs.
std::vector<std::string> parameters_of(const Graph& g) {
  std::vector<std::string> names;
  for (const Value leaf : g.leaves(NodeKind::kParameter)) names.push_back(g.node(leaf).name);
  return names;
}

TEST_CASE("transformer: an encoder layer has two norms, four projections and two layers") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {2, 5, 8}}),
              mask = g.input("mask", {DType::kU8, {2, 5}});
  const Value y = encoder_layer(net, "layer", x, mask, {.heads = 2, .feed_forward = 16});
  CHECK(g.shape(y) == Shape{2, 5, 8});
  std::vector<std::string> expected;
  for (const char* norm : {"layer/attention/norm", "layer/feed_forward/norm"}) {
    for (const char* name : {"/gain", "/bias"}) expected.push_back(std::string(norm) + name);
  }
  for (const char* layer : {"attention/q", "attention/k", "attention/v", "attention/out",
                            "feed_forward/1", "feed_forward/2"}) {
    for (const char* name : {"/weight", "/bias"}) {
      expected.push_back("layer/" + std::string(layer) + name);
    }
  }
  std::vector<std::string> got = parameters_of(g);
  std::ranges::sort(got);
  std::ranges::sort(expected);
  CHECK(got == expected);
  test::check_refused([&] { encoder_layer(net, "other", x, mask, {.heads = 3}); },
                      "attention:", "expected heads that divide the width 8, got 3");
}

// y of an encoder layer whose projections are all zero but for their bias: every branch is 0.
TEST_CASE(
    "transformer: with silent branches pre-norm gives x itself, and post-norm its norm twice") {
  const auto run = [](NormPlace place) {
    Graph g;
    Net net{.graph = g, .dtype = DType::kF64};
    const Value x = g.input("x", {DType::kF64, {1, 2, 4}});
    const Value mask = g.constant(Tensor::of<std::uint8_t>({1, 2}, {1, 1}));
    TransformerOptions options{.heads = 2, .feed_forward = 4, .place = place};
    options.init = [](std::int64_t) { return zeros(); };
    g.mark_output("y", encoder_layer(net, "layer", x, mask, options));
    Feeds feeds;
    feeds["x"] = test::f64({1, 2, 4}, {1, 2, 3, 4, 0, 0, 2, 2});
    return std::move(run_graph(*make_backend("reference"), g, feeds).at("y"));
  };
  test::check_close(run(NormPlace::kPre), test::f64({1, 2, 4}, {1, 2, 3, 4, 0, 0, 2, 2}), 0);
  const double a = 1.5 / std::sqrt(1.25), b = 0.5 / std::sqrt(1.25);
  // The eps of 1e-5 beside variances of 1.25 and 1, twice.
  test::check_close(run(NormPlace::kPost), test::f64({1, 2, 4}, {-a, -b, b, a, -1, -1, 1, 1}),
                    2e-5);
}

// The memory that two graphs of a decoder layer take: the encoder's output and its mask.
AttentionMemory decoder_memory(Net& net, const TransformerOptions& options) {
  Graph& g = net.graph;
  const Value x = g.input("memory", {DType::kF64, {2, 3, 8}});
  AttentionMemory memory = project_memory(net, "layer/memory_attention", x, options);
  memory.mask = g.input("memory_mask", {DType::kU8, {2, 3}});
  return memory;
}

void check_position_by_position(const TransformerOptions& options) {
  constexpr std::int64_t kLength = 5;
  const TensorType keys{DType::kF64, {2, kLength, 8}};
  Graph whole, step;
  Net of_whole{.graph = whole, .mode = Mode::kEvaluate, .dtype = DType::kF64};
  Net of_step{.graph = step, .mode = Mode::kEvaluate, .dtype = DType::kF64};
  const Value all = whole.input("x", keys), mask = whole.input("mask", {DType::kU8, {2, kLength}});
  const DecoderInputs whole_inputs{all, mask, decoder_memory(of_whole, options)};
  whole.mark_output("y", decoder_layer(of_whole, "layer", whole_inputs, options));
  const Value one = step.input("x", {DType::kF64, {2, 1, 8}}),
              t = step.input("t", {DType::kI32, {}});
  const Value seen = step.input("seen", {DType::kU8, {2, kLength}});
  const JoinKeys join = [&](const AttentionMemory& now) -> AttentionMemory {
    const auto joined = [&](const char* name, Value x) {
      const Value before = step.state(name, keys, nullptr);
      const Value next = ops::scatter(step, before, x, t);
      step.mark_update(before, next);
      return next;
    };
    return {joined("keys", now.keys), joined("values", now.values), seen};
  };
  const DecoderInputs step_inputs{one, {}, decoder_memory(of_step, options)};
  step.mark_output("y", decoder_step(of_step, "layer", step_inputs, join, options));

  const auto backend = make_backend("reference");
  Variables variables(*backend, 3);
  Program full(*backend, variables, whole), single(*backend, variables, step);
  const Tensor x = test::random_normal(keys.shape, 1), memory = test::random_normal({2, 3, 8}, 2);
  const Tensor memory_mask = Tensor::of<std::uint8_t>({2, 3}, {1, 1, 1, 1, 1, 0});
  for (Program* program : {&full, &single}) {
    program->feed("memory", memory);
    program->feed("memory_mask", memory_mask);
  }
  full.feed("x", x);
  full.feed("mask", Tensor::of<std::uint8_t>({2, kLength}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  full.run();
  const Tensor expected = full.fetch("y");
  for (std::int64_t place = 0; place < kLength; ++place) {
    CAPTURE(place);
    Tensor at(DType::kF64, {2, 1, 8}), so_far(DType::kU8, {2, kLength}), y(DType::kF64, {2, 1, 8});
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t i = 0; i < 8; ++i) {
        const std::int64_t from = (r * kLength + place) * 8 + i;
        at.as<double>()[std::size_t(r * 8 + i)] = x.at(from);
        y.as<double>()[std::size_t(r * 8 + i)] = expected.at(from);
      }
      for (std::int64_t j = 0; j <= place; ++j) {
        so_far.as<std::uint8_t>()[std::size_t(r * kLength + j)] = 1;
      }
    }
    single.feed("x", at);
    single.feed("t", Tensor::of<std::int32_t>({}, {std::int32_t(place)}));
    single.feed("seen", so_far);
    single.run();
    test::check_close(single.fetch("y"), y, 1e-13);
  }
}

TEST_CASE("transformer: a decoder layer position by position is the layer of all positions") {
  for (std::size_t i = 0; i < kPlacements.size(); ++i) {
    const std::string place(kPlacements[i].name);
    CAPTURE(place);
    check_position_by_position({.heads = 2,
                                .feed_forward = 16,
                                .place = NormPlace(i),
                                .depth = {.layer = 2, .layers = 2, .branches = 3}});
  }
}

TEST_CASE("transformer: a memory of half the rows serves two rows of the query each") {
  const TransformerOptions options{.heads = 2};
  Graph g;
  Net net{.graph = g, .mode = Mode::kEvaluate, .dtype = DType::kF64};
  const Value query = g.input("query", {DType::kF64, {4, 2, 8}}),
              keys = g.input("keys", {DType::kF64, {2, 3, 8}}),
              mask = g.input("mask", {DType::kU8, {2, 3}}),
              twice = g.constant(Tensor::of<std::int32_t>({4}, {0, 0, 1, 1}));
  g.mark_output("few",
                attend(net, "a", query, {.keys = keys, .values = keys, .mask = mask}, options));
  const Value repeated = ops::take_rows(g, keys, twice);
  const Value seen = g.input("seen", {DType::kU8, {4, 3}});
  g.mark_output("all", attend(net, "b", query, {.keys = repeated, .values = repeated, .mask = seen},
                              options));
  const auto backend = make_backend("reference");
  Variables variables(*backend, 3);
  Program program(*backend, variables, g);
  for (const char* layer : {"q", "out"}) {
    for (const char* name : {"weight", "bias"}) {
      variables.write(fmt::format("b/{}/{}", layer, name),
                      variables.read(fmt::format("a/{}/{}", layer, name)));
    }
  }
  program.feed("query", test::random_normal({4, 2, 8}, 1));
  program.feed("keys", test::random_normal({2, 3, 8}, 2));
  program.feed("mask", Tensor::of<std::uint8_t>({2, 3}, {1, 1, 0, 1, 1, 1}));
  program.feed("seen", Tensor::of<std::uint8_t>({4, 3}, {1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1}));
  program.run();
  test::check_close(program.fetch("few"), program.fetch("all"), 1e-14);
}

TEST_CASE("transformer: dropout is drawn in training alone") {
  Graph g;
  Net net{.graph = g, .mode = Mode::kEvaluate};
  const Value x = g.input("x", {DType::kF32, {2, 3}});
  CHECK(dropout(net, x, 0.5) == x);
  net.mode = Mode::kTrain;
  CHECK(dropout(net, x, 0) == x);
  net.step = g.input("step", {DType::kI32, {}});
  net.first_row = g.input("first_row", {DType::kI32, {}});
  CHECK(dropout(net, x, 0.5) != x);
}

}  // namespace
}  // namespace keel::nn
