// The network of DRAW, its bound and its samples.
#include "frontend/train/evaluator.h"
#include "models/draw/model.h"
#include "models/draw/sampler.h"
#include "src/ops/loss.h"
#include "src/ops/random_normal.h"
#include "src/ops/reduce.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::models {
namespace {

TEST_CASE("draw: the paper's network has the parameters that it should") {
  Graph g;
  nn::Net net{.graph = g};
  const Value step = g.input("step", {DType::kI32, {}}), row = g.input("row", {DType::kI32, {}});
  const DrawNetOptions options{.sizes = {.glimpses = 2}, .norms = {}, .key = {step, row}};
  draw_image(net, options, g.input("x", {DType::kF32, {3, 28, 28}}));
  const std::int64_t encoder = 1024 * (8 + 256 + 256 + 1), decoder = 1024 * (100 + 256 + 1);
  CHECK(count_parameters(g) == encoder + decoder + 257 * (5 + 5 + 25) + 257 * (100 + 100));
}

TEST_CASE("draw: every parameter has a gradient, whatever the norm") {
  for (const char* norm : {"none", "layernorm", "rmsnorm"}) {
    CAPTURE(norm);
    const auto job = small_job({std::string("model.norm=") + norm}, "draw");
    CHECK(idle_parameters(job) == std::set<std::string>{});
  }
}

TEST_CASE("draw: with one glimpse of 28 narrow filters a pixel apart, an image is read as it is") {
  // log sigma^2 so that neighbours have no share; gamma = 2.
  const double narrow = 2 * std::log(0.05);
  test::OpCase c;
  c.inputs.push_back(test::f64({1, 5}, {0, 0, narrow, 0, std::log(2.0)}));
  c.inputs.push_back(test::random_normal({1, 28, 28}, 1));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    nn::Net net{.graph = g, .dtype = DType::kF64};
    return std::vector{read_glimpse(net, v[0], v[1], {.filters = 28, .rows = 28, .columns = 28})};
  };
  const Results results = test::run_reference(c);
  for (std::int64_t e = 0; e < 784; ++e) {
    CHECK(results.at("y0").at(e) == doctest::Approx(2 * c.inputs[1].at(e)).epsilon(1e-6));
  }
}

// The bound and its divergence for parameters of a seed, all in float64.
struct Bound {
  Graph graph;
  std::vector<Value> parameters;
  Value bound, kl;

  explicit Bound(const DrawSizes& sizes) {
    nn::Net net{.graph = graph, .dtype = DType::kF64};
    const Value step = graph.constant(Tensor::of<std::int32_t>({}, {3}));
    const Value row = graph.constant(Tensor::of<std::int32_t>({}, {0}));
    DrawNetOptions options{.sizes = sizes, .norms = {}, .init_deviation = 0.4, .key = {step, row}};
    options.norms.cell = nn::Norm::parse("layernorm");
    const Shape shape{2, sizes.rows, sizes.columns};
    const Value x = graph.constant(pixels(shape));
    const DrawOutputs out = draw_image(net, options, x);
    kl = out.kl;
    bound = ops::add(graph, ops::bce_with_logits(graph, out.canvas, x).sum, kl);
    parameters = graph.leaves(NodeKind::kParameter);
  }
  static Tensor pixels(const Shape& shape) {
    Tensor x = test::random_normal(shape, 4);
    for (double& v : x.as<double>()) v = v > 0.3 ? 1 : 0;
    return x;
  }
};

TEST_CASE("draw: the whole bound's gradient is that of finite differences, what is drawn held") {
  const DrawSizes sizes{
      .rows = 5, .columns = 6, .glimpses = 3, .width = 4, .latent = 2, .read = 2, .write = 3};
  Bound b(sizes);
  const std::vector<Value> gradients = gradient(b.graph, b.bound, b.parameters);
  b.graph.mark_output("bound", b.bound);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    b.graph.mark_output(fmt::format("d{}", i), ops::scale(b.graph, gradients[i], 1));
  }
  const auto backend = make_backend("reference");
  Variables variables(*backend, 7);
  Program program(*backend, variables, b.graph);
  program.run();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string name = b.graph.node(b.parameters[i]).name;
    CAPTURE(name);
    const Tensor d = program.fetch(fmt::format("d{}", i)), at = variables.read(name);
    // Along one direction: a vector of +-1.
    double expected = 0;
    const auto moved = [&](double by) {
      Tensor value = at.clone();
      const Philox random(9, 1);
      for (std::int64_t e = 0; e < at.elements(); ++e) {
        value.as<double>()[std::size_t(e)] += random.below(std::uint64_t(e), 2) == 0 ? by : -by;
      }
      variables.write(name, value);
      program.run();
      return program.scalar("bound");
    };
    const Philox random(9, 1);
    for (std::int64_t e = 0; e < at.elements(); ++e) {
      expected += random.below(std::uint64_t(e), 2) == 0 ? d.at(e) : -d.at(e);
    }
    constexpr double kStep = 1e-5;
    const double numeric = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    variables.write(name, at);
    program.run();  // the next gradient is that of the weights as they were
    CHECK(std::abs(numeric - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE("draw: the divergence is 0 for an encoder that says nothing, and never below") {
  const DrawSizes sizes{
      .rows = 4, .columns = 4, .glimpses = 2, .width = 3, .latent = 5, .read = 2, .write = 2};
  Bound b(sizes);
  b.graph.mark_output("kl", b.kl);
  const auto backend = make_backend("reference");
  for (const std::uint64_t seed : {1, 2, 3}) {
    Variables variables(*backend, seed);
    Program program(*backend, variables, b.graph);
    program.run();
    CHECK(program.scalar("kl") > 0);
    for (const char* name : {"mean/weight", "log_deviation/weight"}) {
      variables.write(name, Tensor(DType::kF64, {3, 5}));
    }
    program.run();
    CHECK(program.scalar("kl") == 0);
  }
}

// The random numbers of an image, or where there is none of a sample, node by node.
std::vector<Tensor> drawn_noise(bool has_image) {
  Graph g;
  nn::Net net{.graph = g, .dtype = DType::kF64};
  const Value zero = g.constant(Tensor(DType::kI32, {}));
  const DrawNetOptions options{
      .sizes = {.rows = 4, .columns = 4, .glimpses = 3, .width = 3, .latent = 5, .write = 2},
      .norms = {},
      .key = {zero, zero}};
  const DrawOutputs out = has_image
                              ? draw_image(net, options, g.constant(Tensor(DType::kF64, {2, 4, 4})))
                              : draw_samples(net, options, 2);
  g.mark_output("canvas", out.canvas);
  std::vector<std::string> names;
  for (int node = 0; node < g.size(); ++node) {
    if (g.node(node).op != &kRandomNormal) continue;
    names.push_back(fmt::format("noise {}", names.size()));
    g.mark_output(names.back(), {node});
  }
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  Program program(*backend, variables, g);
  program.run();
  std::vector<Tensor> noise;
  for (const std::string& name : names) noise.push_back(program.fetch(name));
  return noise;
}

TEST_CASE("draw: every glimpse has noise of its own, in every image and every number") {
  for (const bool has_image : {true, false}) {
    CAPTURE(has_image);
    std::set<double> values;
    const std::vector<Tensor> noise = drawn_noise(has_image);
    for (const Tensor& of_glimpse : noise) {
      CHECK(of_glimpse.shape() == Shape{2, 5});
      for (std::int64_t e = 0; e < of_glimpse.elements(); ++e) values.insert(of_glimpse.at(e));
    }
    CHECK(noise.size() == 3);
    CHECK(values.size() == 3 * 2 * 5);
  }
}

TEST_CASE("draw: a split's bound is its reconstruction and its divergence, which is above 0") {
  const auto job = small_job({}, "draw");
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  const auto stream = job.splits().stream(task::Split::kTest, {.batch = 32});
  const train::Evaluation e = evaluator.run(*stream);
  CHECK(e.at("kl") > 0);
  CHECK(e.at("bound") == doctest::Approx(e.at("kl") + e.at("reconstruction")));
  CHECK(e.loss == doctest::Approx(e.at("bound")));
}

TEST_CASE("draw: samples are as many as asked for, each a function of its number") {
  const auto job = small_job({}, "draw");
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  const auto drawn = [&](std::vector<std::string> lines) {
    const auto decoder = job.network().decoder(lines, 1);
    evaluator.decode(*decoder);
    return decoder->answers();
  };
  const std::vector<std::string> both = drawn({"2", "1"}), again = drawn({"2", "1"});
  REQUIRE(both.size() == 2);
  CHECK(both == again);
  CHECK(both[1] != drawn({"1"})[0]);  // the third sample is not the first
  CHECK(both[0].substr(1, 3) == "PNG");
  test::check_refused(
      [] {
        DrawSampler(std::vector<std::string>{"3", "x"});
      },
      "[draw] standard input: line 2: expected a number of samples, 1 to 1000, got 'x'", "",
      ErrorKind::kBadInput);
  test::check_refused([] { DrawSampler(std::vector<std::string>{"0"}); },
                      "[draw] standard input: line 1: expected a number of samples", "",
                      ErrorKind::kBadInput);
}

TEST_CASE("draw: options that do not fit are refused by name") {
  const auto refused = [](const char* setting, const char* message) {
    test::check_refused([&] { small_job({setting}, "draw"); }, message);
  };
  refused("model.read=1", "model.read: expected 2 to 1024, got 1");
  refused("model.glimpses=0", "model.glimpses: expected 1 to 65536, got 0");
  refused("model.binarize=grey", "model.binarize");
}

}  // namespace
}  // namespace keel::models
