// PowerNorm under a mask that leaves rows out.
#include <doctest/doctest.h>

#include "src/ops/norm/power_norm.h"
#include "tests/support/checks.h"
#include "tests/support/norm_template.h"
#include "tests/support/power_norm_stepper.h"
#include "tests/support/tested_backends.h"

namespace keel::test {

namespace {}  // namespace
TEST_CASE("power_norm: a row mask" * doctest::test_suite("slow")) {
  for (const PowerNormMode mode : kPowerNormModes) {
    for (bool training : {true, false}) {
      const PowerNormAttrs attrs{.mode = mode, .training = training};
      const auto build = [attrs](Graph& g, const NormInputs& in, Value mask) {
        return ops::power_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1], {}, mask},
                               attrs);
      };
      check_row_mask(build, 2);
    }
  }
}

// The kept rows hold x = (2, 4), the other 3.
TEST_CASE("power_norm: rows left out, and with pad_stats their share of Gamma and Lambda") {
  const Tensor x = f64({3, 1}, {2, 3, 4}), dy = f64({3, 1}, {1, -5, 2});
  const Tensor mask = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  for (const std::string& backend : tested_backends()) {
    for (bool pad_stats : {false, true}) {
      CAPTURE(pad_stats);
      const PowerNormAttrs attrs{.eps = 0, .alpha_f = 0.5, .alpha_b = 0.5, .pad_stats = pad_stats};
      PowerNormStepper norm(backend, {3, 1}, attrs, &mask);
      norm.write("nu", f64({1}, {0.5}));
      const Results got = norm.step(x, dy);
      const double gamma = pad_stats ? 29. / 3 : 10, lambda = pad_stats ? -5. / 3 : 5;
      CHECK(got.at("Gamma").at(0) == doctest::Approx(gamma));
      CHECK(got.at("nu").at(0) == doctest::Approx(0.5 * (1 - 0.5 * gamma) + 0.5 * lambda));
      CHECK(got.at("psi2").at(0) == doctest::Approx(5.5));
      CHECK(got.at("dgain").at(0) == doctest::Approx(10));
      CHECK(got.at("dbias").at(0) == doctest::Approx(3));
      check_close(got.at("dx").to(DType::kF64), f64({3, 1}, {0, 0, 0}), 1e-6);
      CHECK(got.at("y").at(1) == 0);
    }
  }
}

TEST_CASE("power_norm: a batch without rows changes no state") {
  const Tensor mask = Tensor::of<std::uint8_t>({2}, {0, 0});
  for (const std::string& backend : tested_backends()) {
    for (bool pad_stats : {false, true}) {
      PowerNormStepper norm(backend, {2, 1}, {.warmup = 5, .pad_stats = pad_stats}, &mask);
      norm.write("nu", f64({1}, {0.5}));
      const Results got = norm.step(f64({2, 1}, {3, 4}), f64({2, 1}, {1, 1}));
      for (const char* name : {"y", "dx"})
        check_close(got.at(name).to(DType::kF64), f64({2, 1}, {0, 0}));
      CHECK(got.at("psi2").at(0) == 1);
      CHECK(got.at("nu").at(0) == 0.5);
      CHECK(got.at("step").at(0) == 0);
    }
  }
}

}  // namespace keel::test
