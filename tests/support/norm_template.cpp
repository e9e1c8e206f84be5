#include "tests/support/norm_template.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "src/ops/norm/norm.h"
#include "tests/support/norm_checks.h"
#include "tests/support/norm_golden.h"
#include "tests/support/tested_backends.h"

namespace keel::test {

void check_agreement(const NormSpec& spec) {
  check_against_reference(spec);
  check_long_sums(spec);
  check_specials(spec);
  if (!spec.own_statistics) return;
  check_tiny_values(spec);
  check_jumping_means(spec);
}

void check_norm(const NormSpec& spec) {
  SUBCASE("gradients") { check_gradients(spec); }
  SUBCASE("in place") { check_in_place(spec); }
  if (spec.own_statistics && spec.centred) {
    SUBCASE("constant groups give the bias") { check_constant_groups(spec); }
  }
  if (!has_fast_backend()) return;
  SUBCASE("it agrees with the reference") { check_agreement(spec); }
  SUBCASE("any thread count") { check_threads(spec); }
  if (spec.layout == NormLayout::kRows) {
    SUBCASE("any order and split of rows") { check_rows(spec); }
  }
}

void check_golden(const NormSpec& spec, std::string_view section,
                  std::initializer_list<std::string_view> keys) {
  const auto input = [](std::string_view key) { return golden("inputs", key); };
  for (const std::string& backend : tested_backends()) {
    NormData data{input("x"), input("dy"), input("gamma"), input("beta"), {}, 1e-5};
    const Shape channels{6};
    for (int i = 0; i < spec.states; ++i) {
      data.state.push_back(random_normal(channels, 5, i == 0 ? 0 : 1, 0));
    }
    const NormResult result = run_norm(*make_backend(backend, {2}), spec.build, data);
    for (std::string_view key : keys) {
      const Tensor expected = golden(section, key);
      const Tensor& got = key == "y"        ? result.outputs[NormOutput::kY]
                          : key == "dx"     ? result.gradients[AffineGradient::kDx]
                          : key == "dgamma" ? result.gradients[AffineGradient::kDgain]
                                            : result.gradients[AffineGradient::kDbias];
      for (std::int64_t i = 0; i < expected.elements(); ++i) {
        CAPTURE(backend);
        CAPTURE(key);
        CAPTURE(i);
        CHECK(std::abs(got.at(i) - expected.at(i)) <= 1e-5);
      }
    }
  }
}

}  // namespace keel::test
