// Moving average batch norm over several steps: worked examples, averages, agreement of backends,
// evaluation.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/sizes.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/norm_golden.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

// A program that trains only the norm, with its states from the start: "y", "rstd", "r", "dx",
// "dgain", "dbias". `keeps_states`: they are outputs too, so that none is written over.
class Training {
 public:
  Training(const std::string& backend, const Shape& shape, const MabnAttrs& attrs,
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
    const ops::MabnState state{g.state("x2", ring, filled(0)),
                               g.state("gz", ring, filled(0)),
                               g.state("v", row, filled(1)),
                               g.state("step", {DType::kI32, {}}, zero),
                               {}};
    const Value x = input("x", shape), dy = input("dy", shape);
    const Value gain = input("gain", row.shape), bias = input("bias", row.shape);
    const Value y = ops::mabn(g, x, {gain, bias}, state, attrs);
    const Value wrt[] = {x, gain, bias};
    const auto [d, changed] = differentiate(g, ops::sum(g, ops::mul(g, y, dy)), wrt);
    for (const Update& update : changed) g.mark_update(update.leaf, update.next);
    if (attrs.training) {
      g.mark_update(state.x2, y.at(MabnOutput::kNextX2));
      g.mark_update(state.v, y.at(MabnOutput::kNextV));
      g.mark_update(state.step, y.at(MabnOutput::kNextStep));
    }
    if (keeps_states) {
      for (const Value v : {state.x2, state.gz, state.v}) g.mark_output(g.node(v).name, v);
    }
    const Value outputs[] = {y, y.at(MabnOutput::kRstd), y.at(MabnOutput::kR), d[0], d[1], d[2]};
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
  static constexpr std::array kNames{"y", "rstd", "r", "dx", "dgain", "dbias"};
  std::unique_ptr<Backend> backend_;
  Variables variables_;
  std::optional<Program> program_;
};

Tensor times(const Tensor& t, double factor) {
  Tensor result = t.clone();
  for (double& v : result.as<double>()) v *= factor;
  return result;
}

// y is linear in gain, so its derivative z r is (y - bias) / gain.
Tensor gain_gradient(const Tensor& y, const Tensor& dy) {
  const Tensor gain = golden("inputs", "gamma"), bias = golden("inputs", "beta");
  Tensor sum(DType::kF64, gain.shape());
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t c = i % gain.elements();
    sum.as<double>()[std::size_t(c)] += dy.at(i) * (y.at(i) - bias.at(c)) / gain.at(c);
  }
  return sum;
}

}  // namespace

TEST_CASE("mabn: worked examples, the second and the third step") {
  const Tensor x = golden("inputs", "x"), dy = golden("inputs", "dy");
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    Training training(backend, {4, 6}, {.m = 2, .warmup = 0, .clip_after = 2});
    for (int t = 1; t <= 3; ++t) {
      CAPTURE(t);
      const Results results = training.step(times(x, 1 + 0.5 * (t - 1)), dy,
                                            golden("inputs", "gamma"), golden("inputs", "beta"));
      if (t == 1) continue;
      const std::string section = fmt::format("MABN m=2 t={} (clip active only for t>2)", t);
      for (const char* name : {"y", "r", "dx"}) {
        CAPTURE(name);
        check_near(results.at(name), golden(section, name));
      }
      const Tensor var = golden(section, "var");
      for (std::int64_t c = 0; c < 6; ++c) {
        CHECK(results.at("rstd").at(c) == doctest::Approx(1 / std::sqrt(var.at(c) + 1e-5)));
      }
      check_near(results.at("dgain"), gain_gradient(golden(section, "y"), dy));
      check_near(training.state("v"), golden(section, "running_var_new"));
    }
    CHECK(training.state("step").at(0) == 3);
  }
}

// x of growing size reaches both ends of the window of r.
TEST_CASE("mabn: the backend agrees with the reference over several steps" *
          doctest::test_suite("slow")) {
  const MabnAttrs attrs{.keep = 0.9, .clip = 1.5, .m = 6, .warmup = 2, .clip_after = 4};
  for (const Shape& shape : {Shape{5, 3}, Shape{300, 70}, Shape{3000, 37}, Shape{4, 33, 5, 7}}) {
    CAPTURE(shape.text());
    Training got(default_backend(), shape, attrs), expected("reference", shape, attrs);
    const Shape channels{shape[1]};
    const Tensor gain = random_normal(channels, 3, 1, 0.2).to(DType::kF32),
                 bias = random_normal(channels, 4).to(DType::kF32);
    for (int t = 1; t <= 8; ++t) {
      CAPTURE(t);
      const Tensor x = random_normal(shape, std::uint32_t(10 + t), 0.3, t < 6 ? t : 0.1);
      const Tensor dy = random_normal(shape, std::uint32_t(20 + t));
      const auto run = [&](Training& training) {
        return training.step(x.to(DType::kF32), dy.to(DType::kF32), gain, bias);
      };
      const Results results = run(got);
      for (const auto& [name, value] : run(expected)) {
        CAPTURE(name);
        const double tolerance = 64 * double(std::numeric_limits<float>::epsilon());
        check_close(results.at(name), value, tolerance);
      }
      for (const char* name : {"x2", "gz", "v", "step"}) {
        CAPTURE(name);
        check_close(got.state(name), expected.state(name), 1e-5);
      }
    }
  }
}

TEST_CASE("mabn: averages are over the last m steps, forward and backward") {
  for (const std::string& backend : tested_backends()) {
    Training training(backend, {2, 1}, {.eps = 0, .m = 2, .warmup = 0});
    const auto step = [&](double x, double dy) {
      return training.step(f64({2, 1}, {x, x}), f64({2, 1}, {dy, dy}), f64({1}, {2}),
                           f64({1}, {3}));
    };
    for (double x : {8., 1., 3.}) step(x, 1);  // mean(x^2) = 64, 1, 9
    const Results results = step(7, 5);        // mean of 9 and 49
    CHECK(results.at("y").at(0) == doctest::Approx(7 / std::sqrt(29.) * 2 + 3));
    // g = dy gain: mean(g z) was 2 * 3 / sqrt(5) and is 10 * 7 / sqrt(29).
    const double z = 7 / std::sqrt(29.), average = (6 / std::sqrt(5.) + 10 * z) / 2;
    CHECK(results.at("dx").at(0) == doctest::Approx((10 - z * average) / std::sqrt(29.)));
    CHECK(results.at("dgain").at(0) == doctest::Approx(2 * 5 * z));
    CHECK(results.at("dbias").at(0) == doctest::Approx(10));
    CHECK(training.state("x2").at(0) == doctest::Approx(49));
    CHECK(training.state("x2").at(1) == doctest::Approx(9));
    CHECK(training.state("gz").at(0) == doctest::Approx(10 * z));
  }
}

// The backward reads the step after the forward, which therefore does not write over it.
TEST_CASE("mabn: states that are written over have the bits of those that are not") {
  const MabnAttrs attrs{.keep = 0.9, .clip = 1.5, .m = 5, .warmup = 2, .clip_after = 4};
  const Tensor gain = random_normal({37}, 3).to(DType::kF32), bias = random_normal({37}, 4);
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    Training over(backend, {300, 37}, attrs), apart(backend, {300, 37}, attrs, true);
    CHECK(over.copies() == 1);
    CHECK(apart.copies() == 4);
    for (int t = 1; t <= 7; ++t) {
      CAPTURE(t);
      const Tensor x = random_normal({300, 37}, std::uint32_t(10 + t), 0.3, t).to(DType::kF32);
      const Results results = over.step(x, x, gain, bias);
      for (const auto& [name, value] : apart.step(x, x, gain, bias)) {
        CAPTURE(name);
        check_close(results.at(name), value, 0);
      }
      for (const char* name : {"x2", "gz", "v", "step"}) {
        CAPTURE(name);
        check_close(over.state(name), apart.state(name), 0);
      }
    }
  }
}

TEST_CASE("mabn: evaluation uses the running value and changes nothing") {
  for (const std::string& backend : tested_backends()) {
    Training evaluation(backend, {2, 1}, {.eps = 3, .m = 2, .training = false});
    for (int run = 0; run < 2; ++run) {
      const Results results =
          evaluation.step(f64({2, 1}, {4, -2}), f64({2, 1}, {1, 6}), f64({1}, {10}), f64({1}, {1}));
      check_close(results.at("y").to(DType::kF64), f64({2, 1}, {21, -9}), 1e-6);
      check_close(results.at("dx").to(DType::kF64), f64({2, 1}, {5, 30}), 1e-6);
      check_close(results.at("dgain").to(DType::kF64), f64({1}, {-4}), 1e-6);
    }
    CHECK(evaluation.state("step").at(0) == 0);
    CHECK(evaluation.state("v").at(0) == 1);
    for (const char* name : {"x2", "gz"})
      check_close(evaluation.state(name), Tensor(DType::kF32, {2, 1}), 0);
  }
}

}  // namespace keel::test
