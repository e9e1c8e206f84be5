// Unified normalization over several steps: a worked example by the statements of its authors'
// program, agreement of backends, batches that the filter skips, evaluation.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/sizes.h"
#include "src/ops/norm/unified_norm.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

constexpr std::array kUnifiedStates{"x2", "gz", "v", "nu", "step"};

// A program that trains only the norm, with its states from the start: "y", "rstd", "ratio",
// "skips", "dx", "dgain", "dbias". `keeps_states`: they are outputs too, so that none is written
// over.
class UnifiedTraining {
 public:
  UnifiedTraining(const std::string& backend, const Shape& shape, const UnifiedNormAttrs& attrs,
                  bool keeps_states = false)
      : backend_(make_backend(backend, {2})), variables_(*backend_, 1) {
    Graph g;
    const std::int64_t channels = column_sizes(shape).channels;
    const auto filled = [](float value) {
      return [value](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); };
    };
    const auto zero = [](Tensor& t, const Philox&) { t.as<std::int32_t>()[0] = 0; };
    const auto input = [&](const char* name, const Shape& s) {
      return g.input(name, {DType::kF32, s});
    };
    const TensorType ring{DType::kF32, {attrs.m, channels}}, row{DType::kF32, {channels}};
    const ops::UnifiedNormState state{g.state("x2", ring, filled(0)),
                                      g.state("gz", ring, filled(0)),
                                      g.state("v", row, filled(1)),
                                      g.state("nu", row, filled(0)),
                                      g.state("step", {DType::kI32, {}}, zero),
                                      {}};
    const Value x = input("x", shape), dy = input("dy", shape);
    const Value gain = input("gain", row.shape), bias = input("bias", row.shape);
    const Value y = ops::unified_norm(g, x, {gain, bias}, state, attrs);
    const Value wrt[] = {x, gain, bias};
    const auto [d, changed] = differentiate(g, ops::sum(g, ops::mul(g, y, dy)), wrt);
    for (const Update& update : changed) g.mark_update(update.leaf, update.next);
    using Out = UnifiedNormOutput;
    if (attrs.training) {
      g.mark_update(state.x2, y.at(Out::kNextX2));
      g.mark_update(state.v, y.at(Out::kNextV));
      g.mark_update(state.step, y.at(Out::kNextStep));
    }
    if (keeps_states) {
      for (const Value v : {state.x2, state.gz, state.v, state.nu}) {
        g.mark_output(g.node(v).name, v);
      }
    }
    const Value outputs[] = {
        y, y.at(Out::kRstd), y.at(Out::kRatio), y.at(Out::kSkips), d[0], d[1], d[2]};
    for (std::size_t i = 0; i < kNames.size(); ++i) g.mark_output(kNames[i], outputs[i]);
    program_.emplace(*backend_, variables_, g);
  }

  Results step(const Tensor& x, const Tensor& dy, const Tensor& gain, const Tensor& bias) {
    program_->feed("x", x);
    program_->feed("dy", dy);
    program_->feed("gain", gain);
    program_->feed("bias", bias);
    program_->run();
    Results results;
    for (const char* name : kNames) results[name] = program_->fetch(name);
    return results;
  }
  Tensor state(const char* name) const { return variables_.read(name); }
  std::size_t copies() const { return program_->plan().copies.size(); }

 private:
  static constexpr std::array kNames{"y", "rstd", "ratio", "skips", "dx", "dgain", "dbias"};
  std::unique_ptr<Backend> backend_;
  Variables variables_;
  std::optional<Program> program_;
};

Tensor scaled_by(const Tensor& t, double factor) {
  Tensor result = t.clone();
  for (double& v : result.as<double>()) v *= factor;
  return result;
}

// Columns of five sizes: the filter skips a batch whose columns are far from their former ones, by
// the measure of how far all columns are from each other.
Tensor columns_of_sizes(const Shape& shape, int t, double deviation) {
  Tensor x = random_normal(shape, std::uint32_t(10 + t), 0.3, deviation);
  const std::int64_t channels = shape[1], inner = shape.elements() / (shape[0] * channels);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    x.as<double>()[std::size_t(i)] *= double(1 + i / inner % channels % 5);
  }
  return x;
}

// By steps: the factors of x and dy; skips; and of both channels y, ratio, dx, dgain, v' and nu',
// y and dx being those of the first row. The first two steps average nothing; the third, the fifth
// and the eighth are outliers, the seventh is none by little; ratio reaches both of its limits.
constexpr double kWorkedSteps[][15] = {
    {1, 1, 0, 2.04446451, -1.67936465, 1, 1, 1.00173653, -0.292649606, 2.35004515, 3.05714094,
     1.26666667, 1.11666667, 0.156669677, 0.050952349},
    {1.5, -0.5, 0, 2.0444653, -1.67936552, 1, 1, -0.359549235, 0.125769658, -1.17502347,
     -1.52857243, 1.965, 1.4925, 0.0626678113, 0.0203809069},
    {0.5, 2, 1, 2.04446024, -1.67935995, 1, 1, 2.46874285, 0.522549845, 4.70007107, 6.11423955,
     1.86016667, 1.39741667, 0.369739102, 0.120246809},
    {1, 1, 0, 2.22073302, -1.7457138, 1.2, 1.13439239, 1.29881125, -0.266189367, 3.29597914,
     3.80669429, 1.94257131, 1.43750131, 0.445764554, 0.140963626},
    {8, 1, 1, 2.04446591, -1.6793662, 1, 1, 0.0771480527, 0.0163309139, 2.35004831, 3.05714788,
     25.2149808, 15.1604178, 0.557857985, 0.177819728},
    {1, 0.5, 0, 2.22424146, -1.75274639, 0.833333333, 0.833333333, 0.299292279, 0.045857638,
     1.14772637, 1.41139948, 22.9603678, 13.820858, 0.56261796, 0.178847599},
    {1.3, 1, 0, 2.19087314, -1.77459529, 0.833333333, 0.833333333, 0.594550588, -0.0664862719,
     2.23288714, 2.90473235, 21.1409977, 12.7204388, 0.619043281, 0.196930604},
    {0.5, 2, 1, 2.04446024, -1.67935995, 1, 1, 2.46874285, 0.522549845, 4.70007107, 6.11423955,
     19.1185646, 11.5025616, 0.870477024, 0.279141536}};

void check_first(const Tensor& got, std::span<const double> expected) {
  for (std::size_t c = 0; c < expected.size(); ++c) {
    CAPTURE(c);
    CHECK(got.at(std::int64_t(c)) == doctest::Approx(expected[c]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE("unified_norm: eight worked steps, of which the filter skips three") {
  const Tensor x = f64({3, 2}, {1, -2, 3, 0.5, -1, 1.5}), dy = f64({3, 2}, {1, -1, 0.5, 2, -2, 1});
  const Tensor gain = f64({2}, {2, 0.5}), bias = f64({2}, {1, -1});
  const UnifiedNormAttrs attrs{.clip = 1.2, .m = 2, .warmup = 3, .clip_after = 3};
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    UnifiedTraining training(backend, {3, 2}, attrs);
    int t = 0;
    for (const auto& row : kWorkedSteps) {
      CAPTURE(++t);
      const Results results =
          training.step(scaled_by(x, row[0]), scaled_by(dy, row[1]), gain, bias);
      CHECK(results.at("skips").at(0) == row[2]);
      int place = 3;
      const auto next = [&] { return std::span(row).subspan(std::exchange(place, place + 2), 2); };
      for (const char* name : {"y", "ratio", "dx", "dgain"}) check_first(results.at(name), next());
      for (const char* name : {"v", "nu"}) check_first(training.state(name), next());
    }
    check_first(training.state("x2"), std::array{21.1409977, 12.7204388, 6.19666667, 3.66166667});
    check_first(training.state("gz"),
                std::array{0.619043281, 0.196930604, 1.48859143, 0.484122059});
    CHECK(training.state("step").at(0) == 8);
  }
}

TEST_CASE("unified_norm: without the filter the same batches are averaged") {
  const Tensor x = f64({3, 2}, {1, -2, 3, 0.5, -1, 1.5});
  const UnifiedNormAttrs attrs{.m = 2, .warmup = 0, .filter = false};
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    UnifiedTraining training(backend, {3, 2}, attrs);
    const auto step = [&](double factor) {
      return training.step(scaled_by(x, factor), x, f64({2}, {1, 1}), f64({2}, {0, 0}));
    };
    for (int t = 1; t <= 2; ++t) step(1);
    const Results results = step(8);  // mean(x^2) is 11 / 3 and 64 times that, the root of both 8
    CHECK(results.at("skips").at(0) == 0);
    CHECK(results.at("rstd").at(0) == doctest::Approx(1 / std::sqrt(8 * 11 / 3. + 1e-5)));
  }
}

TEST_CASE("unified_norm: one channel makes a batch an outlier") {
  const Shape shape{4, 40};
  const Tensor gain = random_normal({40}, 3), bias = random_normal({40}, 4);
  for (const std::string& backend : tested_backends()) {
    for (const std::int64_t channel : {0, 17, 39, 40}) {
      CAPTURE(backend);
      CAPTURE(channel);
      UnifiedTraining training(backend, shape, {.warmup = 0});
      Tensor x = columns_of_sizes(shape, 0, 0);
      const auto step = [&] { return training.step(x, x, gain, bias); };
      for (int t = 1; t <= 5; ++t) CHECK(step().at("skips").at(0) == 0);
      for (std::int64_t i = channel; i < x.elements() && channel < 40; i += 40) {
        x.as<double>()[std::size_t(i)] *= 40;
      }
      CHECK(step().at("skips").at(0) == (channel < 40 ? 1 : 0));
    }
  }
}

// Two equal numbers have themselves as both of their means, and their roots no variance.
TEST_CASE("unified_norm: equal batches are no outliers") {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    UnifiedTraining training(backend, {2, 1}, {.m = 8, .warmup = 0});
    const Tensor x = f64({2, 1}, {0.3, 0.3}), one = f64({1}, {1});
    for (int t = 1; t <= 12; ++t) {
      CAPTURE(t);
      CHECK(training.step(x, x, one, one).at("skips").at(0) == 0);
    }
  }
}

// x of growing size reaches both limits of ratio, and the seventh step is an outlier.
TEST_CASE("unified_norm: the backend agrees with the reference over several steps" *
          doctest::test_suite("slow")) {
  for (const std::int64_t m : {1, 2, 4}) {
    const UnifiedNormAttrs attrs{.clip = 1.5, .m = m, .warmup = 2, .clip_after = 4};
    for (const Shape& shape : {Shape{5, 3}, Shape{300, 70}, Shape{3000, 37}, Shape{4, 33, 5, 7}}) {
      CAPTURE(shape.text());
      CAPTURE(m);
      UnifiedTraining got(default_backend(), shape, attrs), expected("reference", shape, attrs);
      const Shape channels{shape[1]};
      const Tensor gain = random_normal(channels, 3, 1, 0.2).to(DType::kF32),
                   bias = random_normal(channels, 4).to(DType::kF32);
      for (int t = 1; t <= 9; ++t) {
        CAPTURE(t);
        const double deviation = t == 7 ? 30 : t == 9 ? 0.3 : 1 + 0.3 * t;
        const Tensor x = columns_of_sizes(shape, t, deviation);
        const Tensor dy = random_normal(shape, std::uint32_t(20 + t));
        const auto run = [&](UnifiedTraining& training) {
          return training.step(x.to(DType::kF32), dy.to(DType::kF32), gain, bias);
        };
        const Results results = run(got);
        for (const auto& [name, value] : run(expected)) {
          CAPTURE(name);
          const double tolerance = 64 * double(std::numeric_limits<float>::epsilon());
          check_close(results.at(name), value, tolerance);
        }
        if (t == 7) CHECK(results.at("skips").at(0) == 1);
        for (const char* name : kUnifiedStates) {
          CAPTURE(name);
          check_close(got.state(name), expected.state(name), 1e-5);
        }
      }
    }
  }
}

// The backward reads the step after the forward, which therefore does not write over it.
TEST_CASE("unified_norm: states that are written over have the bits of those that are not") {
  const UnifiedNormAttrs attrs{.clip = 1.5, .m = 4, .warmup = 2, .clip_after = 4};
  const Tensor gain = random_normal({37}, 3).to(DType::kF32), bias = random_normal({37}, 4);
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    UnifiedTraining over(backend, {300, 37}, attrs), apart(backend, {300, 37}, attrs, true);
    CHECK(over.copies() == 1);
    CHECK(apart.copies() == 5);
    for (int t = 1; t <= 8; ++t) {
      CAPTURE(t);
      const Tensor x = columns_of_sizes({300, 37}, t, t == 6 ? 50 : 1).to(DType::kF32);
      const Results results = over.step(x, x, gain, bias);
      CHECK((results.at("skips").at(0) == 1) == (t == 6));
      for (const auto& [name, value] : apart.step(x, x, gain, bias)) {
        CAPTURE(name);
        check_close(results.at(name), value, 0);
      }
      for (const char* name : kUnifiedStates) {
        CAPTURE(name);
        check_close(over.state(name), apart.state(name), 0);
      }
    }
  }
}

TEST_CASE("unified_norm: evaluation uses the running value and changes nothing") {
  for (const std::string& backend : tested_backends()) {
    UnifiedTraining evaluation(backend, {2, 1}, {.eps = 3, .m = 2, .training = false});
    for (int run = 0; run < 2; ++run) {
      const Results results =
          evaluation.step(f64({2, 1}, {4, -2}), f64({2, 1}, {1, 6}), f64({1}, {10}), f64({1}, {1}));
      check_close(results.at("y").to(DType::kF64), f64({2, 1}, {21, -9}), 1e-6);
      check_close(results.at("dx").to(DType::kF64), f64({2, 1}, {5, 30}), 1e-6);
      check_close(results.at("dgain").to(DType::kF64), f64({1}, {-4}), 1e-6);
      CHECK(results.at("skips").at(0) == 0);
    }
    CHECK(evaluation.state("step").at(0) == 0);
    CHECK(evaluation.state("v").at(0) == 1);
    CHECK(evaluation.state("nu").at(0) == 0);
    for (const char* name : {"x2", "gz"})
      check_close(evaluation.state(name), Tensor(DType::kF32, {2, 1}), 0);
  }
}

}  // namespace keel::test
