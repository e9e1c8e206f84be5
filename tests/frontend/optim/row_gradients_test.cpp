// TableTraining steps by rows of a table's gradient against steps by the whole gradient: the same
// bits.
#include <doctest/doctest.h>

#include <cstring>

#include "backends/backends.h"
#include "frontend/optim/clip.h"
#include "frontend/optim/optimizer.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/reduce.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"

namespace keel::optim {
namespace {

constexpr std::int64_t kVocabulary = 500, kWidth = 37, kIds = 60;

struct Rule {
  OptimizerOptions optimizer;
  ClipOptions clip = {};
  RowChoice choice = {};
};

// Steps of a network that looks ids up twice, in two forms of its first lookup.
class TableTraining {
 public:
  TableTraining(Backend& backend, const Rule& rule) : variables_(backend, 1) {
    Graph g;
    const auto drawn = [](Tensor& t, const Philox& random) {
      for (std::size_t i = 0; i < t.as<float>().size(); ++i) {
        t.as<float>()[i] = float(random.below(i, 2001)) / 1000 - 1;
      }
    };
    const Value table = g.parameter("table", {DType::kF32, {kVocabulary, kWidth}}, drawn);
    const Value gain = g.parameter("gain", {DType::kF32, {kWidth}}, drawn);
    const Value a = g.input("a", {DType::kI32, {kIds}}), b = g.input("b", {DType::kI32, {9, 2}});
    const Value x = ops::mul(g, ops::embedding(g, table, a, 3), gain);
    const Value y = ops::mul(g, ops::embedding(g, table, b), gain);
    const Value factor = g.input("factor", {DType::kF32, {}});
    const Value sums = ops::add(g, ops::sum(g, ops::tanh(g, x)), ops::sum(g, ops::square(g, y)));
    train(g, ops::mul(g, sums, factor), {table, gain}, rule);
    program_ = std::make_unique<Program>(backend, variables_, g);
  }

  // Id 3 is padding of the first lookup; some ids are of many rows, one of both lookups.
  void step(int t, float factor = 1) {
    Tensor a(DType::kI32, {kIds}), b(DType::kI32, {9, 2});
    const Philox random(std::uint64_t(t), 7);
    for (std::size_t i = 0; i < std::size_t(kIds); ++i) {
      a.as<std::int32_t>()[i] = std::int32_t(random.below(i, i % 3 == 0 ? 6 : kVocabulary));
    }
    for (std::size_t i = 0; i < 18; ++i) {
      b.as<std::int32_t>()[i] = std::int32_t(random.below(100 + i, 40));
    }
    program_->feed("a", a);
    program_->feed("b", b);
    program_->feed("factor", Tensor::of<float>({}, {factor}));
    program_->feed("lr", Tensor::of<float>({}, {0.01f}));
    program_->feed("step", Tensor::of<std::int32_t>({}, {t}));
    program_->run();
  }

  std::vector<Tensor> state() const {
    std::vector<Tensor> all;
    for (const auto& [name, variable] : variables_.all()) {
      all.push_back(variables_.read(name, true));
    }
    all.push_back(program_->fetch("norm", true));
    return all;
  }
  Tensor read(const std::string& name) const { return variables_.read(name, true); }
  bool has_rows() const { return has_rows_; }

 private:
  void train(Graph& g, Value loss, const std::vector<Value>& parameters, const Rule& rule) {
    const ParameterGradients gradients = differentiate_by_rows(g, loss, parameters, rule.choice);
    has_rows_ = gradients.of[0].is_rows();
    const Clipped clipped = clip_gradients(g, parameters, gradients.of, rule.clip);
    const StepInputs inputs{g.input("lr", {DType::kF32, {}}), clipped.scale,
                            g.input("step", {DType::kI32, {}})};
    apply_optimizer(g, parameters, clipped.gradients, inputs, rule.optimizer);
    g.mark_output("norm", clipped.norm);
  }

  Variables variables_;
  std::unique_ptr<Program> program_;
  bool has_rows_ = false;
};

constexpr RowChoice kWhole{.least_rows_per_id = 1e9};

void check_same(const TableTraining& a, const TableTraining& b) {
  const std::vector<Tensor> of_a = a.state(), of_b = b.state();
  REQUIRE(of_a.size() == of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(of_a[i].type() == of_b[i].type());
    CHECK(std::memcmp(of_a[i].data(), of_b[i].data(), std::size_t(of_a[i].bytes())) == 0);
  }
}

void check_rule(Rule rule) {
  CAPTURE(choice_text(rule.optimizer.kind));
  CAPTURE(rule.optimizer.weight_decay);
  CAPTURE(choice_text(rule.clip.kind));
  for (const std::string& name : {default_backend(), std::string("reference")}) {
    const auto backend = make_backend(name, {2});
    TableTraining rows(*backend, rule);
    rule.choice = kWhole;
    TableTraining whole(*backend, rule);
    rule.choice = {};
    CHECK(rows.has_rows());
    CHECK_FALSE(whole.has_rows());
    for (int t = 0; t < 4; ++t) {
      for (TableTraining* training : {&rows, &whole}) training->step(t);
    }
    check_same(rows, whole);
  }
}

constexpr Clipping kClippings[] = {Clipping::kNone, Clipping::kGlobal, Clipping::kPerTensor,
                                   Clipping::kElement};

TEST_CASE("row gradients: every optimizer under every clipping, as by whole gradients" *
          doctest::test_suite("slow")) {
  const OptimizerOptions rows[] = {
      {.kind = Optimizer::kSgd},
      {.kind = Optimizer::kSgd, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
      {.kind = Optimizer::kAdam, .weight_decay = 0.01},
      {.kind = Optimizer::kAdamw, .weight_decay = 0.01},
      {.kind = Optimizer::kAdamFairseq, .weight_decay = 0.01},
      {.kind = Optimizer::kAdamRelease},
      {.kind = Optimizer::kAdagrad},
      {.kind = Optimizer::kAdagrad, .weight_decay = 0.01},
      {.kind = Optimizer::kRmspropGraves}};
  for (const OptimizerOptions& optimizer : rows) {
    for (const Clipping clipping : kClippings) check_rule({optimizer, {clipping, 0.05}});
  }
}

TEST_CASE("row gradients: a step that is not finite changes nothing") {
  for (const Clipping clipping : kClippings) {
    CAPTURE(choice_text(clipping));
    const auto backend = make_backend(default_backend(), {2});
    TableTraining training(*backend, {{.kind = Optimizer::kAdam}, {clipping, 0.05}});
    training.step(0);
    const Tensor before = training.read("table"), moment = training.read("table.v");
    training.step(1, std::numeric_limits<float>::infinity());
    CHECK_FALSE(std::isfinite(training.state().back().at(0)));
    test::check_close(training.read("table"), before, 0);
    test::check_close(training.read("table.v"), moment, 0);
  }
}

TEST_CASE("row gradients: lazy updates leave rows alone that no batch looked up") {
  for (const Optimizer kind : {Optimizer::kAdam, Optimizer::kAdamw, Optimizer::kRmspropGraves}) {
    CAPTURE(choice_text(kind));
    const auto backend = make_backend(default_backend(), {2});
    Rule rule{{.kind = kind, .weight_decay = 0.1}};
    TableTraining exact(*backend, rule);
    rule.optimizer.embedding_updates = EmbeddingUpdates::kLazy;
    TableTraining lazy(*backend, rule);
    const Tensor first = lazy.read("table");
    for (TableTraining* training : {&exact, &lazy}) training->step(0);
    std::int64_t alike = 0, kept = 0;
    const Tensor by_exact = exact.read("table"), by_lazy = lazy.read("table");
    for (std::int64_t e = 0; e < first.elements(); ++e) {
      alike += by_lazy.at(e) == by_exact.at(e);
      kept += by_lazy.at(e) == first.at(e);
    }
    CHECK(alike + kept >= first.elements());  // each row is one or the other
    CHECK(alike < first.elements());
    CHECK(kept > (kVocabulary - kIds - 18) * kWidth - 1);
    CHECK(kept < first.elements());
    for (int t = 1; t < 3; ++t) lazy.step(t);
    CHECK(std::memcmp(lazy.read("table").data(), by_lazy.data(), 100) != 0);
  }
}

}  // namespace
}  // namespace keel::optim
