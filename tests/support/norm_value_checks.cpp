// Values of a norm: the distance of the backend under test from the reference on generated, large
// and special cases, and groups of one value.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/backends.h"
#include "bench/norm_errors.h"
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
  kZero,
  kHuge,
  kLargest,
  kOneLargest,
  kTiny,
  kSubnormal,
  kConstant,
  kAway,
  kSpecials
};

// Groups whose elements, or their squares, are near or beyond what a float holds.
template <class Normal>
void set_large_groups(NormData& data, const NormCase& c, const Normal& z) {
  const double largest = std::numeric_limits<float>::max();
  set_group(data, c, kHuge, [&](auto e) { return 1e30 * z(kHuge, e); });
  set_group(data, c, kLargest, [&](auto e) { return e % 3 ? largest : -largest; });
  set_group(data, c, kOneLargest, [&](auto e) { return e == c.n / 3 ? largest : z(1, e); });
  set_group(data, c, kAway, [&](auto e) { return 1e6 + z(kAway, e); });
}

void set_specials(const NormSpec& spec, NormData& data, const NormCase& c, bool with_non_finite) {
  const Tensor normal = random_normal(Shape{kSpecials, c.n}, 8);
  const auto z = [&](std::int64_t k, std::int64_t e) { return normal.at(k * c.n + e); };
  for (std::int64_t k = 0; k < kSpecials; ++k)
    set_group(data, c, k, [&](auto e) { return z(k, e); });
  set_group(data, c, kZero, [](auto) { return 0; });
  set_group(data, c, kSubnormal, [&](auto e) { return 1e-40 * z(kSubnormal, e); });
  set_group(data, c, kTiny, [&](auto e) { return 1e-30 * z(kTiny, e); });
  set_group(data, c, kConstant, [](auto) { return 5.3; });
  if (spec.own_statistics) set_large_groups(data, c, z);
  if (!with_non_finite) return;
  data.x.as<double>()[std::size_t(c.at(kNan, c.n / 2))] = NAN;
  data.x.as<double>()[std::size_t(c.at(kInfinite, c.n - 1))] = INFINITY;
}

}  // namespace

void check_case(const NormSpec& spec, const NormCase& listed) {
  const NormCase c = case_of(spec, listed);
  if (c.n < spec.least_n || (c.groups == 0 && spec.layout != NormLayout::kRows)) return;
  check_data(spec, c, data_of(spec, c));
}

void check_data(const NormSpec& spec, const NormCase& c, const NormData& data) {
  const NormResult got = run_fast(spec, data);
  check_errors(spec, c, {data, got, run_reference(spec, data)});
  // A megabyte and a few rows of parameters, never the size of x.
  CAPTURE(c.text());
  CHECK(got.workspace <= (1 << 20) + 64 * c.parameter_shape().elements());
}

void check_against_reference(const NormSpec& spec) {
  for (const NormCase& c : tested_cases(spec.layout)) check_case(spec, c);
  for (const NormCase& c : tested_large_cases(spec.layout)) check_case(spec, c);
}

void check_few_cases(const NormSpec& spec) {
  constexpr std::pair<double, double> kMoments[] = {{0, 1}, {1e6, 1}, {100, 0.01}, {0, 1e-4}};
  for (std::int64_t n : {2, 3, 37, 257, 1025, 4099}) {
    for (const auto& [mean, deviation] : kMoments) {
      check_case(spec, {.groups = 9, .n = n, .mean = mean, .deviation = deviation});
    }
  }
  check_specials(spec);
}

void check_tiny_values(const NormSpec& spec) {
  const NormCase c = case_of(spec, {.groups = 18, .n = 40, .eps = 0});
  NormData data = data_of(spec, c);
  for (double& x : data.x.as<double>()) x = double(float(1e-30 * x));
  check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
}

void check_jumping_means(const NormSpec& spec) {
  for (const double jump : {1e1, 1e3, 1e6}) {
    for (const std::int64_t first : {1, 8, 16, 20, 40, 100, 112, 200, 399}) {
      if (is_emulated() && first % 8 != 0) continue;
      const NormCase c = case_of(spec, {.groups = 18, .n = 400});
      NormData data = data_of(spec, c);
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
  NormData data = data_of(spec, c);
  std::ranges::fill(data.dy.as<double>(), double(0.1f));
  check_errors(spec, c, {data, run_fast(spec, data), run_reference(spec, data)});
}

void check_constant_groups(const NormSpec& spec) {
  for (std::int64_t n : {1, 2, 3, 17, 33, 1000, 4099}) {
    if (n < spec.least_n) continue;
    for (double eps : {1e-1, 1e-12}) {
      const NormCase c = case_of(spec, {.groups = 5, .n = n, .eps = eps});
      CAPTURE(c.text());
      NormData data = data_of(spec, c);
      constexpr double kValues[] = {1e6, 0.1, -123.456, 3e-20, 7e30};
      for (std::int64_t k = 0; k < c.groups; ++k)
        set_group(data, c, k, [&](auto) { return kValues[k]; });
      if (data.gain) std::ranges::fill(data.gain->as<double>(), 123);
      std::vector<NormResult> results;
      results.push_back(run_reference(spec, data));
      if (has_fast_backend()) results.push_back(run_fast(spec, data));
      for (const NormResult& result : results) {
        CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
                return result.outputs[NormOutput::kY].at(c.at(k, e)) !=
                       (data.bias ? data.bias->at(c.parameter(k, e)) : 0);
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
      NormData data = data_of(spec, c);
      set_specials(spec, data, c, false);
      const NormResult finite = run_fast(spec, data);
      check_errors(spec, c, {data, finite, run_reference(spec, data)});
      set_specials(spec, data, c, true);
      const NormResult got = run_fast(spec, data);
      const auto has_changed = [&](const Tensor& before, const Tensor& now, std::int64_t i) {
        return before.at(i) != now.at(i);
      };
      const Tensor &y = got.outputs[NormOutput::kY], &dx = got.gradients[AffineGradient::kDx];
      CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
              if (k == kNan || k == kInfinite) return false;
              const std::int64_t i = c.at(k, e);
              return has_changed(finite.outputs[NormOutput::kY], y, i) ||
                     has_changed(finite.gradients[AffineGradient::kDx], dx, i);
            }) == 0);
      // All of a group, where it is normalized by statistics of its own.
      CHECK(std::isnan(y.at(c.at(kNan, c.n / 2))));
      CHECK(count(c, [&](std::int64_t k, std::int64_t e) {
              const bool is_spoilt = k == kNan || (k == kInfinite && spec.centred);
              const std::int64_t i = c.at(k, e);
              return spec.own_statistics && is_spoilt &&
                     !(std::isnan(y.at(i)) && std::isnan(dx.at(i)));
            }) == 0);
    }
  }
}

}  // namespace keel::test
