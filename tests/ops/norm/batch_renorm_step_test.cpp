// One training step of batch renormalization: the running statistics and what a mask leaves out.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "backends/backends.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/stop_gradient.h"
#include "tests/support/checks.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

const BatchRenormAttrs kRelaxed{.r_max = 3, .d_max = 5};

// One step on x with gain 1.5, bias 0.25, running mean 0.5 and std 2: y0 = y, y1 = mean',
// y2 = std', y3 = step', and the gradients d0 of x, d2 of gain, d3 of bias.
struct Step {
  Tensor x;
  BatchRenormAttrs attrs;
  std::int32_t step = 0;
  std::vector<std::uint8_t> mask = {};
  std::optional<Tensor> choice = {};  // a matrix: y = choice^T norm(choice x)

  Results run(const std::string& backend) const {
    OpCase c;
    const std::int64_t channels = x.shape()[1];
    c.inputs.push_back(x.clone());
    c.inputs.push_back(i32({}, {step}));
    for (double v : {1.5, 0.25}) c.inputs.push_back(random_normal({channels}, 2, v, 0));
    if (!mask.empty()) {
      c.inputs.push_back(Tensor::of<std::uint8_t>({std::int64_t(mask.size())}, mask));
    }
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      const auto state = [&](double v) {
        return g.constant(random_normal({channels}, 2, v, 0).to(g.type(in[0]).dtype));
      };
      Value p, x_of_norm = in[0];
      if (choice) {
        p = g.constant(choice->to(g.type(in[0]).dtype));
        x_of_norm = ops::matmul(g, p, in[0]);
      }
      const Value mask_of_norm = in.size() > 4 ? in[4] : Value{};
      const Value y = ops::batch_renorm(g, x_of_norm, {in[2], in[3]},
                                        {state(0.5), state(2), in[1], mask_of_norm}, attrs);
      const Value shown = choice ? ops::matmul(g, p, y, {.transpose_a = true}) : y;
      if (!attrs.training) return std::vector{shown};
      return std::vector{shown, ops::stop_gradient(g, y.at(BatchRenormOutput::kNextRunningMean)),
                         ops::stop_gradient(g, y.at(BatchRenormOutput::kNextRunningStd)),
                         y.at(BatchRenormOutput::kNextStep)};
    };
    return run_case(*make_backend(backend), c, DType::kF32);
  }
};

}  // namespace

// Values that are not clipped are normalized by the running statistics, as in evaluation.
TEST_CASE("batch_renorm: without clipping training gives what evaluation gives") {
  for (const std::string& backend : tested_backends()) {
    const Tensor x = random_normal({40, 3}, 1, 1, 2);
    const Results training = Step{x.clone(), kRelaxed}.run(backend);
    const Results evaluation = Step{x.clone(), {.training = false}}.run(backend);
    check_close(training.at("y0"), evaluation.at("y0"), 1e-5);
  }
}

// Mean 4 and s = 2 (variance 3, eps 1), before them 0.5 and 2.
TEST_CASE("batch_renorm: the state is read before the step and written after it") {
  for (const std::string& backend : tested_backends()) {
    const Tensor x = f64({4, 1}, {4 - 1, 4 + 1, 4 - std::sqrt(5), 4 + std::sqrt(5)});
    const BatchRenormAttrs attrs{.eps = 1, .rate = 0.25, .d_start = 6, .d_end = 8};
    const Results before = Step{x.clone(), attrs, 6}.run(backend);
    CHECK(before.at("y0").at(0) == doctest::Approx(1.5 * -0.5 + 0.25));
    CHECK(before.at("y1").at(0) == doctest::Approx(0.75 * 0.5 + 0.25 * 4));
    CHECK(before.at("y2").at(0) == doctest::Approx(2));
    CHECK(before.at("y3").at(0) == 7);
    const Results after = Step{x.clone(), attrs, 8}.run(backend);
    CHECK(after.at("y0").at(0) == doctest::Approx(1.5 * (-0.5 + 1.75) + 0.25));
    CHECK(after.at("y3").at(0) == 9);
  }
}

// P (kept rows, rows) takes the kept rows of x; its transpose puts them back and 0 elsewhere.
TEST_CASE("batch_renorm: rows that a mask leaves out might as well not be there") {
  const Step masked{random_normal({5, 3}, 1, 3, 2), kRelaxed, 0, {1, 0, 1, 1, 0}};
  Step chosen{masked.x.clone(), kRelaxed};
  chosen.choice = f64({3, 5}, {1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0});
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const Results got = masked.run(backend), expected = chosen.run(backend);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      check_close(got.at(name), value, 1e-6);
    }
  }
}

// Several panels, several blocks; long runs, short ones, and blocks without a row; NaN is not read.
TEST_CASE("batch_renorm: masks of many rows, against the reference" * doctest::test_suite("slow")) {
  for (const auto& [rows, channels] : {std::pair{300, 70}, {4099, 65}}) {
    CAPTURE(rows);
    Step step{random_normal({rows, channels}, 1, 3, 2), kRelaxed};
    for (int row = 0; row < rows; ++row) {
      step.mask.push_back(row % 7 != 3 && row % 100 < 80 && (row < 2000 || row > 4000));
      if (step.mask.back() == 0) step.x.as<double>()[std::size_t(row * channels)] = NAN;
    }
    const Results got = step.run(default_backend()), expected = step.run("reference");
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      check_close(got.at(name), value, 2e-6);
    }
  }
}

TEST_CASE("batch_renorm: a batch without a row that is kept changes nothing") {
  for (const std::string& backend : tested_backends()) {
    const Results results = Step{random_normal({3, 2}, 1), kRelaxed, 4, {0, 0, 0}}.run(backend);
    for (const char* name : {"y0", "d0"})
      check_close(results.at(name), f64({3, 2}, {0, 0, 0, 0, 0, 0}), 0);
    check_close(results.at("y1"), f64({2}, {0.5, 0.5}), 0);
    check_close(results.at("y2"), f64({2}, {2, 2}), 0);
    CHECK(results.at("y3").at(0) == 4);
    for (const char* name : {"d2", "d3"}) check_close(results.at(name), f64({2}, {0, 0}), 0);
  }
}

}  // namespace keel::test
