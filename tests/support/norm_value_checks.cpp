// Values of a norm: the distance of the backend under test from the reference on generated, large
// and special cases, and groups of one value.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backends.h"
#include "frontend/compare/cases/norm_errors.h"
#include "src/ops/norm/norm.h"
#include "tests/support/graph_runner.h"
#include "tests/support/norm_checks.h"
#include "tests/support/thoroughness.h"

namespace keel::test {
namespace {

struct Outcome {
  const NormData& data;
  const NormResult &got, &expected;
};

void check_errors(const NormSpec& spec, const NormCase& c, const Outcome& outcome) {
  CAPTURE(c.text());
  const NormErrors errors = norm_errors(c, outcome.data, outcome.got, outcome.expected);
  CHECK(errors.forward <= kForwardBound + (spec.moved ? c.deviation : 0));
  CHECK(errors.dx <= kBackwardBound);
  CHECK(errors.parameters <= kBackwardBound);
}

// How many elements satisfy a predicate (group, element of it).
template <class Predicate>
int count(const NormCase& c, const Predicate& predicate) {
  int n = 0;
  for (std::int64_t k = 0; k < c.groups; ++k) {
    for (std::int64_t e = 0; e < c.n; ++e) n += predicate(k, e);
  }
  return n;
}

enum Special : std::int64_t {
  kNormal,
  kNan,
  kInfinite,
  kHuge,
  kLargest,
  kOneLargest,
  kTiny,
  kSubnormal,
  kConstant,
  kAway,
  kSpecials
};

void set_specials(NormData& data, const NormCase& c, bool with_non_finite) {
  const Tensor normal = random_normal(Shape{kSpecials, c.n}, 8);
  const auto z = [&](std::int64_t k, std::int64_t e) { return normal.at(k * c.n + e); };
  for (std::int64_t k = 0; k < kSpecials; ++k)
    set_group(data, c, k, [&](auto e) { return z(k, e); });
  const double largest = std::numeric_limits<float>::max();
  set_group(data, c, kHuge, [&](auto e) { return 1e30 * z(kHuge, e); });
  set_group(data, c, kLargest, [&](auto e) { return e % 3 ? largest : -largest; });
  set_group(data, c, kOneLargest, [&](auto e) { return e == c.n / 3 ? largest : z(1, e); });
  set_group(data, c, kSubnormal, [&](auto e) { return 1e-40 * z(kSubnormal, e); });
  set_group(data, c, kTiny, [&](auto e) { return 1e-30 * z(kTiny, e); });
  set_group(data, c, kConstant, [](auto) { return 5.3; });
  set_group(data, c, kAway, [&](auto e) { return 1e6 + z(kAway, e); });
  if (!with_non_finite) return;
  data.x.as<double>()[std::size_t(c.at(kNan, c.n / 2))] = NAN;
  data.x.as<double>()[std::size_t(c.at(kInfinite, c.n - 1))] = INFINITY;
}

}  // namespace

void check_against_reference(const NormSpec& spec) {
  std::vector<NormCase> cases = tested_cases(spec.layout);
  for (const NormCase& c : tested_large_cases(spec.layout)) cases.push_back(c);
  const auto tested = make_backend(default_backend(), {2});
  const auto reference = make_backend("reference");
  for (NormCase c : cases) {
    c = case_of(spec, c);
    if (c.n < spec.least_n || (c.groups == 0 && spec.layout != NormLayout::kRows)) continue;
    const NormData data = make_data(c);
    const NormResult got = run_norm(*tested, spec.build, data);
    check_errors(spec, c, {data, got, run_norm(*reference, spec.build, data)});
    // A megabyte and a few rows of parameters, never the size of x.
    CAPTURE(c.text());
    CHECK(got.workspace <= (1 << 20) + 64 * c.parameter_shape().elements());
  }
}

void check_tiny_values(const NormSpec& spec) {
  const NormCase c = case_of(spec, {.groups = 18, .n = 40, .eps = 0});
  NormData data = make_data(c);
  for (double& x : data.x.as<double>()) x = double(float(1e-30 * x));
  check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
}

void check_jumping_means(const NormSpec& spec) {
  for (const double jump : {1e1, 1e3, 1e6}) {
    for (const std::int64_t first : {1, 8, 16, 20, 40, 100, 112, 200, 399}) {
      if (is_emulated() && first % 8 != 0) continue;
      const NormCase c = case_of(spec, {.groups = 18, .n = 400});
      NormData data = make_data(c);
      const Tensor x = data.x.clone();
      for (std::int64_t k = 0; k < c.groups; ++k) {
        set_group(data, c, k,
                  [&](std::int64_t e) { return x.at(c.at(k, e)) + (e >= first ? jump : 0); });
      }
      CAPTURE(jump);
      CAPTURE(first);
      check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
    }
  }
}

// dy of one sign makes the sums of dgain and dbias grow over all rows: an error of each addition
// would show.
void check_long_sums(const NormSpec& spec) {
  const bool rows = spec.layout == NormLayout::kRows;
  const NormCase c = case_of(spec, {.groups = rows ? 65536 : 3, .n = rows ? 3 : 65536, .mean = 2});
  NormData data = make_data(c);
  std::ranges::fill(data.dy.as<double>(), double(0.1f));
  check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
}

void check_constant_groups(const NormSpec& spec) {
  for (std::int64_t n : {1, 2, 3, 17, 33, 1000, 4099}) {
    if (n < spec.least_n) continue;
    for (double eps : {1e-1, 1e-12}) {
      const NormCase c = case_of(spec, {.groups = 5, .n = n, .eps = eps});
      CAPTURE(c.text());
      NormData data = make_data(c);
      constexpr double kValues[] = {1e6, 0.1, -123.456, 3e-20, 7e30};
      for (std::int64_t k = 0; k < c.groups; ++k)
        set_group(data, c, k, [&](auto) { return kValues[k]; });
      for (double& gain : data.gain->as<double>()) gain = 123;
      std::vector<NormResult> results;
      results.push_back(run_reference(spec, data));
      if (has_fast_backend()) results.push_back(run_fast(spec, data));
      for (const NormResult& result : results) {
        CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
                return result.outputs[NormOutput::kY].at(c.at(k, e)) !=
                       data.bias->at(c.parameter(k, e));
              }) == 0);
      }
    }
  }
}

void check_specials(const NormSpec& spec) {
  for (std::int64_t n : {2, 37, 1025}) {
    for (double eps : {1e-1, 1e-5, 1e-12}) {
      const NormCase c = case_of(spec, {.groups = kSpecials, .n = n, .eps = eps});
      CAPTURE(c.text());
      NormData data = make_data(c);
      set_specials(data, c, false);
      const NormResult finite = run_fast(spec, data);
      check_errors(spec, c, {data, finite, run_reference(spec, data)});
      set_specials(data, c, true);
      const NormResult got = run_fast(spec, data);
      const auto has_changed = [&](const Tensor& before, const Tensor& now, std::int64_t i) {
        return before.at(i) != now.at(i);
      };
      CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
              const std::int64_t i = c.at(k, e);
              const bool spoilt = k == kNan || k == kInfinite;
              return spoilt ? !std::isnan(got.outputs[NormOutput::kY].at(i)) ||
                                  !std::isnan(got.gradients[AffineGradient::kDx].at(i))
                            : has_changed(finite.outputs[NormOutput::kY],
                                          got.outputs[NormOutput::kY], i) ||
                                  has_changed(finite.gradients[AffineGradient::kDx],
                                              got.gradients[AffineGradient::kDx], i);
            }) == 0);
    }
  }
}

}  // namespace keel::test
