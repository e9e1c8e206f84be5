// Optimizers as nodes of a training graph against textbook loops in double, and their state.
#include "frontend/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::optim {
namespace {

constexpr int kUpdates = 5, kSize = 4;
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

  explicit Training(const OptimizerOptions& options, const ParameterFacts& facts = {},
                    bool is_reached = true) {
    Graph g;
    const TensorType type{DType::kF32, {kSize}};
    const auto one = [](Tensor& t, const Philox&) {
      for (float& x : t.as<float>()) x = 1;
    };
    const std::vector parameters{g.parameter("a", type, one), g.parameter("b/w", type, one, facts)};
    std::vector gradients{g.input("g0", type), g.input("g1", type)};
    if (!is_reached) gradients[1] = {};
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
  double lr_scale = 1;
  double p = 1, m = 0, v = 0, u = 0;

  void step(int t, double g) {
    const double lr = rate(t) * lr_scale;
    const bool is_decoupled = o.kind == Optimizer::kAdamw || o.kind == Optimizer::kAdamFairseq;
    is_decoupled ? p -= lr* o.weight_decay* p : g += o.weight_decay * p;
    if (o.kind == Optimizer::kSgd) {
      u = o.momentum * u + g;
      p -= lr * (o.nesterov ? g + o.momentum * u : u);
    } else if (o.kind == Optimizer::kAdagrad) {
      v += g * g;
      p -= lr * g / std::sqrt(v + 1e-6);
    } else if (o.kind == Optimizer::kRmspropGraves) {
      v = 0.95 * v + 0.05 * g * g;
      m = 0.95 * m + 0.05 * g;
      u = 0.9 * u - lr * g / std::sqrt(v - m * m + 1e-4);
      p += u;
    } else {
      adam(t, g, lr);
    }
  }
  void adam(int t, double g, double lr) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const bool is_release = o.kind == Optimizer::kAdamRelease;
    const double c1 = 1 - std::pow(is_release ? 0.1 : o.beta1, t + 1),
                 c2 = 1 - std::pow(is_release ? 0.001 : o.beta2, t + 1);
    p -= is_release || o.kind == Optimizer::kAdamFairseq
             ? lr * (std::sqrt(c2) / c1) * m / (std::sqrt(v) + o.eps)
             : lr * (m / c1) / (std::sqrt(v / c2) + o.eps);
  }
};

void check_by_the_book(Training& training, Textbook a, Textbook b) {
  std::vector<Textbook> book(kSize, a);
  book.insert(book.end(), kSize, b);
  for (int t = 0; t < kUpdates; ++t) {
    training.step(t);
    for (std::uint32_t which : {0u, 1u}) {
      const Tensor p = training.variables.read(which == 0 ? "a" : "b/w", true),
                   g = gradient_at(t, which);
      for (std::int64_t e = 0; e < kSize; ++e) {
        Textbook& element = book[which * kSize + std::size_t(e)];
        element.step(t, kScale * g.at(e));
        CHECK(p.at(e) == doctest::Approx(element.p).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("optimizer: vectors of a weight keep length 1, in the direction of the update") {
  for (const UnitVectors unit : {UnitVectors::kRows, UnitVectors::kColumns}) {
    const bool of_rows = unit == UnitVectors::kRows;
    reference::ReferenceBackend backend;
    Variables variables(backend, 1);
    Graph g;
    const TensorType type{DType::kF64, {2, 3}};
    const auto start = [](Tensor& t, const Philox&) { t = test::random_normal(t.shape(), 3); };
    const std::vector parameters{g.parameter("w", type, start, {.unit = unit})},
        gradients{g.input("dw", type)};
    const StepInputs in{g.constant(0.5, DType::kF64), {}, g.input("step", {DType::kI32, {}})};
    apply_optimizer(g, parameters, gradients, in, {.kind = Optimizer::kSgd});
    Program program(backend, variables, g);
    program.feed("step", test::i32({}, {0}));
    Tensor w = test::random_normal({2, 3}, 3);
    for (int t = 0; t < 3; ++t) {
      const Tensor dw = test::random_normal({2, 3}, 20 + std::uint32_t(t));
      program.feed("dw", dw);
      program.run();
      for (std::size_t e = 0; e < 6; ++e) w.as<double>()[e] -= 0.5 * dw.at(std::int64_t(e));
      for (std::size_t i = 0; i < (of_rows ? 2 : 3); ++i) {
        double squares = 0;
        const auto vector = [&](std::size_t k) -> double& {
          return w.as<double>()[of_rows ? 3 * i + k : 3 * k + i];
        };
        const std::size_t length = of_rows ? 3 : 2;
        for (std::size_t k = 0; k < length; ++k) squares += vector(k) * vector(k);
        for (std::size_t k = 0; k < length; ++k) vector(k) /= std::sqrt(squares);
      }
      test::check_close(variables.read("w"), w, 1e-12);
    }
  }
}

TEST_CASE("optimizer: a step whose scale is not finite changes no bit of a weight of length 1") {
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Graph g;
  const TensorType type{DType::kF32, {4, 5}};
  const auto start = [](Tensor& t, const Philox&) {
    t = test::random_normal(t.shape(), 3).to(DType::kF32);
  };
  const std::vector parameters{g.parameter("w", type, start, {.unit = UnitVectors::kColumns})},
      gradients{g.input("dw", type)};
  const StepInputs in{g.constant(0.5, DType::kF32), g.input("scale", {DType::kF32, {}}),
                      g.input("step", {DType::kI32, {}})};
  apply_optimizer(g, parameters, gradients, in, {.kind = Optimizer::kAdam});
  Program program(backend, variables, g);
  program.feed("step", test::i32({}, {0}));
  program.feed("dw", test::random_normal({4, 5}, 20));
  for (const double scale : {INFINITY, NAN}) {
    program.feed("scale", test::f64({}, {scale}));
    program.run();
    test::check_close(variables.read("w"), test::random_normal({4, 5}, 3).to(DType::kF32), 0);
  }
  program.feed("scale", test::f64({}, {1}));
  program.run();
  const Tensor w = variables.read("w");
  for (std::int64_t k = 0; k < 5; ++k) {
    double squares = 0;
    for (std::int64_t i = 0; i < 4; ++i) squares += w.at(5 * i + k) * w.at(5 * i + k);
    CHECK(squares == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("optimizer: five steps by the book") {
  const OptimizerOptions rows[] = {
      {.kind = Optimizer::kSgd},
      {.kind = Optimizer::kSgd, .weight_decay = 0.25},
      {.kind = Optimizer::kSgd, .momentum = 0.9},
      {.kind = Optimizer::kSgd, .momentum = 0.9, .weight_decay = 0.25, .nesterov = true},
      {.kind = Optimizer::kAdam},
      {.kind = Optimizer::kAdam, .weight_decay = 0.25, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3},
      {.kind = Optimizer::kAdamw, .weight_decay = 0.25},
      {.kind = Optimizer::kAdamFairseq, .weight_decay = 0.25, .eps = 1e-3},
      {.kind = Optimizer::kAdamRelease, .eps = 1e-3},
      {.kind = Optimizer::kAdagrad},
      {.kind = Optimizer::kAdagrad, .weight_decay = 0.25},
      {.kind = Optimizer::kRmspropGraves},
      {.kind = Optimizer::kRmspropGraves, .weight_decay = 0.25}};
  for (const OptimizerOptions& options : rows) {
    CAPTURE(choice_text(options.kind));
    CAPTURE(options.momentum);
    CAPTURE(options.weight_decay);
    Training training(options);
    check_by_the_book(training, {options}, {options});
  }
}

constexpr Optimizer kKinds[] = {
    Optimizer::kSgd,         Optimizer::kAdam,    Optimizer::kAdamw,        Optimizer::kAdamFairseq,
    Optimizer::kAdamRelease, Optimizer::kAdagrad, Optimizer::kRmspropGraves};

// Adam of the releases refuses weight decay.
OptimizerOptions decaying(Optimizer kind) {
  return {.kind = kind, .weight_decay = kind == Optimizer::kAdamRelease ? 0 : 0.25};
}

TEST_CASE("optimizer: weight decay leaves alone what does not decay, unless all are to") {
  for (const Optimizer kind : kKinds) {
    if (kind == Optimizer::kAdamRelease) continue;
    CAPTURE(choice_text(kind));
    OptimizerOptions options = decaying(kind), none{.kind = kind};
    Training weights(options, {.decays = false});
    check_by_the_book(weights, {options}, {none});
    options.decays_all = true;
    Training all(options, {.decays = false});
    check_by_the_book(all, {options}, {options});
  }
}

TEST_CASE("optimizer: a parameter's own scale of the learning rate") {
  for (const Optimizer kind : kKinds) {
    CAPTURE(choice_text(kind));
    const OptimizerOptions options = decaying(kind);
    Training training(options, {.lr_scale = 0.125});
    check_by_the_book(training, {options}, {options, 0.125});
  }
}

// Neither updated nor decayed, and without states.
void check_left_alone(Training& training) {
  training.step(0);
  CHECK(training.variables.read("a").at(0) != 1);
  for (std::int64_t e = 0; e < kSize; ++e) CHECK(training.variables.read("b/w").at(e) == 1);
  for (const auto& [name, variable] : training.variables.all()) {
    CHECK((variable.kind != NodeKind::kState || name.starts_with("a.")));
  }
}

TEST_CASE("optimizer: what does not train, and what the loss does not reach, stays as it is") {
  for (const Optimizer kind : kKinds) {
    CAPTURE(choice_text(kind));
    const OptimizerOptions options = decaying(kind);
    Training fixed(options, {.trains = false}), unreached(options, {}, false);
    check_left_alone(fixed);
    check_left_alone(unreached);
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
  CHECK(states({.kind = Optimizer::kSgd}).empty());
  CHECK(states({.kind = Optimizer::kSgd, .momentum = 0.5}) == Names{"a.momentum", "b/w.momentum"});
  CHECK(states({.kind = Optimizer::kAdam}) == Names{"a.m", "a.v", "b/w.m", "b/w.v"});
  CHECK(states({.kind = Optimizer::kAdamw}) == Names{"a.m", "a.v", "b/w.m", "b/w.v"});
  CHECK(states({.kind = Optimizer::kAdamFairseq}) == Names{"a.m", "a.v", "b/w.m", "b/w.v"});
  CHECK(states({.kind = Optimizer::kAdagrad}) == Names{"a.h", "b/w.h"});
  CHECK(states({.kind = Optimizer::kRmspropGraves}) ==
        Names{"a.d", "a.n", "a.q", "b/w.d", "b/w.n", "b/w.q"});
}

TEST_CASE("optimizer: the release's form has no weight decay") {
  test::check_refused([] { Training({.kind = Optimizer::kAdamRelease, .weight_decay = 0.1}); },
                      "weight_decay: expected 0 for adam_release, got 0.1");
}

}  // namespace
}  // namespace keel::optim
