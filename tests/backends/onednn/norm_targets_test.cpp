// Norms on every instruction set that this machine has, not only on the best one.
#include <doctest/doctest.h>

#include "backends/backends.h"
#include "bench/norm_accuracy.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/norm_template.h"

namespace keel::test {

TEST_CASE("onednn norms: every instruction set agrees with the reference" *
          doctest::test_suite("slow")) {
  const NormBuild layer_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::layer_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
  };
  const NormBuild batch_norm = [](Graph& g, const NormInputs& in, double eps) {
    return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1]}, {.eps = eps});
  };
  for_each_target([&] {
    check_agreement({layer_norm});
    check_agreement({batch_norm, NormLayout::kColumns, 2});
    check_agreement({batch_norm, NormLayout::kImages, 2});
    check_agreement({batch_norm, NormLayout::kThumbnails, 2});
  });
}

TEST_CASE("onednn norms: every norm keeps the bounds on every instruction set") {
  const auto backend = make_backend("onednn", {2});
  const auto few = [](NormLayout layout) { return generated_cases(layout, 499); };
  for_each_target([&] {
    for (const std::string& norm : bench::accuracy_norms()) {
      for (const bench::WorstError& worst : bench::measure_accuracy(*backend, norm, few).worst) {
        CAPTURE(norm);
        CAPTURE(worst.of);
        CAPTURE(worst.at);
        CHECK(worst.error <= worst.bound);
      }
    }
  });
}

TEST_CASE("onednn norms: small groups keep the bounds on every instruction set") {
  const auto backend = make_backend("onednn", {2});
  for_each_target([&] {
    for (const int width : {1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32}) {
      const std::string at = fmt::format("rows,groups=57,n={},split=19,mean=100", width);
      for (const bench::WorstError& worst :
           bench::measure_accuracy(*backend, "groupnorm{groups=19}", at).worst) {
        CAPTURE(worst.of);
        CAPTURE(worst.at);
        CHECK(worst.error <= worst.bound);
      }
    }
  });
}

}  // namespace keel::test
