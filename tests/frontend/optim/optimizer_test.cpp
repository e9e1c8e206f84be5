// Optimizers as nodes of a training graph against textbook loops in double, and their state.
#include "frontend/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::optim {
namespace {

constexpr int kSteps = 5, kSize = 4;
constexpr double kScale = 0.5;

double rate(int t) { return 0.125 / (1 + t); }
Tensor gradient_at(int t, std::uint32_t which) {
  return test::random_normal({kSize}, 10 * which + std::uint32_t(t));
}

// Two parameters, trained by the graph.
struct Training {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
  std::unique_ptr<Program> program;

  explicit Training(const OptimizerOptions& options) {
    Graph g;
    const TensorType type{DType::kF32, {kSize}};
    const auto one = [](Tensor& t, const Philox&) {
      for (float& x : t.as<float>()) x = 1;
    };
    const std::vector parameters{g.parameter("a", type, one), g.parameter("b/w", type, one)};
    const std::vector gradients{g.input("g0", type), g.input("g1", type)};
    const StepInputs inputs{g.input("lr", {DType::kF32, {}}), g.input("scale", {DType::kF32, {}}),
                            g.input("step", {DType::kI32, {}})};
    apply_optimizer(g, parameters, gradients, inputs, options);
    program = std::make_unique<Program>(backend, variables, g);
  }

  void step(int t) {
    program->feed("g0", gradient_at(t, 0));
    program->feed("g1", gradient_at(t, 1));
    program->feed("lr", test::f64({}, {rate(t)}));
    program->feed("scale", test::f64({}, {kScale}));
    program->feed("step", test::i32({}, {t}));
    program->run();
  }
};

// One element of a parameter, trained by the book: Kingma & Ba 2015, algorithm 1; Loshchilov &
// Hutter 2019, algorithm 2; Sutskever et al. 2013, rewritten for u.
struct Textbook {
  OptimizerOptions o;
  double p = 1, m = 0, v = 0, u = 0;

  void step(int t, double g) {
    const double lr = rate(t);
    if (o.name == "adamw") p -= lr * o.weight_decay * p;
    if (o.name != "adamw") g += o.weight_decay * p;
    if (o.name == "sgd") {
      u = o.momentum * u + g;
      p -= lr * (o.nesterov ? g + o.momentum * u : u);
      return;
    }
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double mhat = m / (1 - std::pow(o.beta1, t + 1)),
                 vhat = v / (1 - std::pow(o.beta2, t + 1));
    p -= lr * mhat / (std::sqrt(vhat) + o.eps);
  }
};

TEST_CASE("optimizer: five steps by the book") {
  const OptimizerOptions rows[] = {
      {.name = "sgd"},
      {.name = "sgd", .weight_decay = 0.25},
      {.name = "sgd", .momentum = 0.9},
      {.name = "sgd", .momentum = 0.9, .weight_decay = 0.25, .nesterov = true},
      {.name = "adam"},
      {.name = "adam", .weight_decay = 0.25, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3},
      {.name = "adamw", .weight_decay = 0.25}};
  for (const OptimizerOptions& options : rows) {
    CAPTURE(options.name);
    CAPTURE(options.momentum);
    CAPTURE(options.weight_decay);
    Training training(options);
    std::vector<Textbook> book(2 * kSize, Textbook{options});
    for (int t = 0; t < kSteps; ++t) {
      training.step(t);
      for (std::uint32_t which : {0u, 1u}) {
        const Tensor p = training.variables.read(which == 0 ? "a" : "b/w", true),
                     g = gradient_at(t, which);
        for (std::int64_t e = 0; e < kSize; ++e) {
          Textbook& element = book[which * kSize + std::size_t(e)];
          element.step(t, kScale * g.at(e));
          CHECK(p.at(e) == doctest::Approx(element.p).epsilon(1e-13));
        }
      }
    }
  }
}

std::vector<std::string> states(const OptimizerOptions& options) {
  std::vector<std::string> names;
  const Training training(options);
  for (const auto& [name, variable] : training.variables.all()) {
    if (variable.kind == NodeKind::kState) names.push_back(name);
  }
  return names;
}

TEST_CASE("optimizer: moments are states named after their parameter") {
  using Names = std::vector<std::string>;
  CHECK(states({.name = "sgd"}).empty());
  CHECK(states({.name = "sgd", .momentum = 0.5}) == Names{"a.momentum", "b/w.momentum"});
  CHECK(states({.name = "adam"}) == Names{"a.m", "a.v", "b/w.m", "b/w.v"});
  CHECK(states({.name = "adamw"}) == Names{"a.m", "a.v", "b/w.m", "b/w.v"});
}

TEST_CASE("optimizer: an unknown name is refused with the nearest") {
  test::check_refused([] { Training({.name = "adamv"}); }, "train.optimizer: 'adamv' is unknown",
                      "nearest: 'adam'");
}

}  // namespace
}  // namespace keel::optim
