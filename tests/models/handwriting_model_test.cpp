// The network of handwriting synthesis.
#include "models/handwriting/builtin.h"
#include "models/handwriting/model.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("handwriting: the paper's network has the parameters that it should") {
  Graph g;
  nn::Net net{.graph = g};
  const HandwritingSizes sizes;
  const HandwritingNetOptions options{.sizes = sizes, .norms = {}};
  handwriting_network(
      net, options,
      {g.input("points", {DType::kF32, {2, 1, 3}}), g.input("mask", {DType::kU8, {2, 1}}),
       g.input("text", {DType::kI32, {1, 4}}),
       g.input("state", {DType::kF32, {1, sizes.state()}})});
  const std::int64_t first = 1600 * (3 + 57 + 400 + 1), later = 1600 * (3 + 400 + 57 + 400 + 1);
  CHECK(count_parameters(g) == first + 2 * later + 30 * 401 + 121 * 1201);
}

TEST_CASE("handwriting: every parameter has a gradient, whatever the norm") {
  for (const char* norm : {"none", "layernorm", "rmsnorm", "weightnorm"}) {
    CAPTURE(norm);
    const auto job = small_job({std::string("model.norm=") + norm}, "handwriting");
    CHECK(idle_parameters(job) == std::set<std::string>{});
  }
}

TEST_CASE("handwriting: the gradient of the whole network by central differences") {
  // A line begins at 0 with a state of 0, which norms amplify by 1 / sqrt(eps) one after the
  // other: with the eps of 1e-5 no step is small enough.
  for (const char* norm : {"none", "layernorm{eps=0.01}"}) {
    CAPTURE(norm);
    check_gradients(small_job({std::string("model.norm=") + norm, "model.clip_cells=0",
                               "model.clip_output=0", "model.width=5"},
                              "handwriting"),
                    3);
  }
}

// The network's outputs with parameters of the seed, on the reference backend.
struct Evaluated {
  Tensor y, state;
};

Evaluated evaluate(const HandwritingNetOptions& options, const std::vector<float>& points,
                   std::int64_t rows, const std::vector<std::uint8_t>& mask, const Tensor& state) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const std::int64_t count = std::int64_t(mask.size()) / rows;
  const auto out = handwriting_network(
      net, options,
      {g.input("points", {DType::kF32, {count, rows, 3}}),
       g.input("mask", {DType::kU8, {count, rows}}), g.input("text", {DType::kI32, {rows, 3}}),
       g.input("state", state.type())});
  g.mark_output("y", out.y);
  g.mark_output("state", out.state);
  const auto backend = make_backend("reference");
  Variables variables(*backend, 5);
  Program program(*backend, variables, g);
  program.feed("points", Tensor::of<float>({count, rows, 3}, points));
  program.feed("mask", Tensor::of<std::uint8_t>({count, rows}, mask));
  std::vector<std::int32_t> text;
  for (std::int64_t row = 0; row < rows; ++row) text.insert(text.end(), {0, 2, 1});
  program.feed("text", Tensor::of<std::int32_t>({rows, 3}, text));
  program.feed("state", state);
  program.run();
  return {program.fetch("y"), program.fetch("state")};
}

HandwritingNetOptions small_network() {
  return {.sizes = {.layers = 2, .width = 5, .bumps = 2, .components = 1, .symbols = 3},
          .norms = nn::cell_norms(nn::Norm::parse("layernorm")),
          .init_deviation = 0.5};
}

TEST_CASE("handwriting: point by point, the state going on, is what all points at once are") {
  const HandwritingNetOptions options = small_network();
  std::vector<float> points;
  for (int i = 0; i < 12; ++i) points.push_back(float(i % 5) - 2);
  Tensor state(DType::kF32, {1, options.sizes.state()});
  const Evaluated whole = evaluate(options, points, 1, {1, 1, 1, 1}, state);
  for (std::int64_t t = 0; t < 4; ++t) {
    const std::vector<float> point(points.begin() + 3 * t, points.begin() + 3 * t + 3);
    const Evaluated one = evaluate(options, point, 1, {1}, state);
    for (std::int64_t c = 0; c < 7; ++c) {
      CHECK(one.y.at(c) == doctest::Approx(whole.y.at(7 * t + c)).epsilon(1e-6));
    }
    state = one.state.to(DType::kF32);
  }
  for (std::int64_t c = 0; c < options.sizes.state(); ++c) {
    CHECK(state.at(c) == doctest::Approx(whole.state.at(c)).epsilon(1e-6));
  }
}

TEST_CASE("handwriting: kappa only grows, and padding after a line changes no bit of it") {
  const HandwritingNetOptions options = small_network();
  const std::vector<float> one{1, 2, 0, -1, 0.5, 1}, more{1, 2, 0, -1, 0.5, 1, 7, 7, 7, 8, 8, 8};
  const Tensor state(DType::kF32, {1, options.sizes.state()});
  const Evaluated few = evaluate(options, one, 1, {1, 1}, state);
  const Evaluated padded = evaluate(options, more, 1, {1, 1, 0, 0}, state);
  for (std::int64_t c = 0; c < 14; ++c) CHECK(padded.y.at(c) == few.y.at(c));
  const std::int64_t kappa = 2 * 2 * 5;
  for (std::int64_t k = kappa; k < kappa + 2; ++k) {
    CHECK(few.state.at(k) > 0);
    CHECK(padded.state.at(k) > few.state.at(k));
  }
}

TEST_CASE("handwriting: an all-zero first state under a norm leaves every gradient as it is") {
  // h U is 0 before the first point, and layer normalization divides by its deviation. Only after
  // the second point is there an h that U has something to do with.
  const auto job = small_job({"model.points=3", "model.multiple=3"}, "handwriting");
  CHECK(idle_parameters(job) == std::set<std::string>{});
}

TEST_CASE("handwriting: a limit on gradients that nothing reaches changes nothing") {
  const auto gradient_of = [](const char* limit) {
    const auto job = small_job(
        {std::string("model.clip_cells=") + limit, std::string("model.clip_output=") + limit},
        "handwriting");
    const auto backend = make_backend("reference");
    Variables variables(*backend, 1);
    const auto stream = job.splits().stream(task::Split::kTrain, {});
    const task::Batch& batch = stream->pick(first_rows(4));
    Program step(*backend, variables, train::build_step(job, batch.sizes), {.guard = "grad_norm"});
    train::Feeder(job.network()).feed(step, batch);
    step.feed("weight", Tensor::scalar(0.25f));
    step.feed("lr", Tensor::scalar(0.0f));
    step.feed("step", Tensor::scalar(std::int32_t{0}));
    step.run();
    return step.scalar("grad_norm");
  };
  const double free = gradient_of("0");
  CHECK(gradient_of("1e6") == free);
  CHECK(gradient_of("1e-3") < 0.9 * free);
}

TEST_CASE("handwriting: the squared error is that of the mixtures' mean") {
  const auto job = small_job({}, "handwriting");
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  // Every point is expected at the weights' mean of the components' means.
  const Tensor weight = variables.read("density/weight");
  variables.write("density/weight", Tensor(DType::kF32, weight.shape()));
  Tensor bias(DType::kF32, variables.read("density/bias").shape());
  const std::int64_t m = (bias.elements() - 1) / 6;
  REQUIRE(m >= 2);
  const std::span<float> y = bias.as<float>();
  y[1] = std::log(3.0F);
  double weights = double(m) + 2, mean1 = 0, mean2 = 0;
  for (std::int64_t j = 0; j < m; ++j) {
    y[std::size_t(1 + m + j)] = float(j) - 0.5F;
    y[std::size_t(1 + 2 * m + j)] = 2;
    mean1 += (j == 0 ? 3 : 1) / weights * (double(j) - 0.5);
    mean2 += (j == 0 ? 3 : 1) / weights * 2;
  }
  variables.write("density/bias", bias);
  const task::Splits& data = job.splits();
  const auto stream = [&] { return data.stream(task::Split::kTest, {.batch = 8}); };
  double squares = 0, points = 0;
  const auto batches = stream();
  for (std::int64_t step = 0; step < batches->steps(0); ++step) {
    const task::Batch& batch = batches->at(0, step);
    const auto targets = batch.values[StrokeValue::kTargets].as<float>();
    const auto mask = batch.values[StrokeValue::kMask].as<std::uint8_t>();
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      squares += std::pow(targets[3 * i] - mean1, 2) + std::pow(targets[3 * i + 1] - mean2, 2);
      ++points;
    }
  }
  const auto rows = stream();
  CHECK(evaluator.run(*rows).at("sse") == doctest::Approx(squares / points).epsilon(1e-5));
}

TEST_CASE("handwriting: options that do not fit are refused by name") {
  const auto refused = [](const char* setting, const char* message) {
    test::check_refused([&] { small_job({setting}, "handwriting"); }, message);
  };
  refused("model.layers=0", "model.layers: expected 1 to 65536, got 0");
  refused("model.init_deviation=0", "model.init_deviation: expected > 0, got 0");
  refused("model.clip_cells=-1", "model.clip_cells: expected >= 0, got -1");
  refused("model.bias=-0.5", "model.bias: expected >= 0, got -0.5");
  refused("model.norm=nothing", "");
}

}  // namespace
}  // namespace keel::models
