// Parts of check_norm for the row norms that it does not fit, because they have no gain and bias of
// the row's shape, or subtract no mean.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "backends/backends.h"
#include "frontend/compare/cases/norm_errors.h"
#include "src/ops/norm/norm.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"
#include "tests/support/thoroughness.h"

namespace keel::test {

struct RowNorm {
  NormBuild build;
  bool has_affine = true;    // gain and bias of the row's shape; else neither, or one gain
  bool single_gain = false;  // gain (1)
  bool centred = true;       // a mean is subtracted
  std::map<std::string, double> more = {};  // further parameters, of one number each
};

inline NormData row_data(const RowNorm& norm, const NormCase& c) {
  NormData data = make_data(c);
  for (const auto& [name, value] : norm.more) data.more[name] = Tensor::of<double>({1}, {value});
  if (norm.has_affine) return data;
  data.gain.reset();
  data.bias.reset();
  if (norm.single_gain) data.gain = Tensor::of<double>({1}, {1.75});
  return data;
}

inline NormResult run_row_norm(const RowNorm& norm, const NormData& data,
                               const std::string& backend = default_backend(), int threads = 2) {
  return run_norm(*make_backend(backend, {threads}), norm.build, data);
}

// CHECKs that the tested backend is within the bounds of norm_errors.
inline void compare_row_norm(const RowNorm& norm, const NormCase& c, const NormData& data) {
  const NormResult got = run_row_norm(norm, data), expected = run_row_norm(norm, data, "reference");
  CAPTURE(c.text());
  const NormErrors errors = norm_errors(c, data, got, expected);
  CHECK(errors.forward <= kForwardBound);
  CHECK(errors.dx <= kBackwardBound);
  CHECK(errors.parameters <= kBackwardBound);
  CHECK(got.workspace <= (1 << 20) + 64 * c.n);
}

inline bool same_bits(const Tensor& a, std::int64_t at, const Tensor& b, std::int64_t from,
                      std::int64_t elements) {
  const auto size = a.type().bytes() / std::max<std::int64_t>(a.elements(), 1);
  return std::memcmp(a.data() + at * size, b.data() + from * size, std::size_t(elements * size)) ==
         0;
}

// Agreement of the tested backend with the reference on generated and large cases.
inline void check_rows_agree(const RowNorm& norm) {
  std::vector<NormCase> cases = tested_cases(NormLayout::kRows);
  for (const NormCase& c : tested_large_cases(NormLayout::kRows)) cases.push_back(c);
  for (const NormCase& c : cases) compare_row_norm(norm, c, row_data(norm, c));
}

// The same bits for any thread count, and in place.
inline void check_rows_repeat(const RowNorm& norm) {
  for (const NormCase& c : tested_large_cases(NormLayout::kRows)) {
    CAPTURE(c.text());
    const NormData data = row_data(norm, c);
    const NormResult expected = run_row_norm(norm, data, default_backend(), 1);
    const auto check = [&](const NormResult& got) {
      for (std::size_t j = 0; j < expected.outputs.size(); ++j) {
        const Tensor& output = expected.outputs[j];
        CHECK(same_bits(got.outputs[j], 0, output, 0, output.elements()));
      }
      for (std::size_t j = 0; j < expected.gradients.size(); ++j) {
        const Tensor& gradient = expected.gradients[j];
        CHECK(same_bits(got.gradients[j], 0, gradient, 0, gradient.elements()));
      }
    };
    for (int threads : {2, 3, 7}) check(run_row_norm(norm, data, default_backend(), threads));
    for (int i = 0; i < repeats(10); ++i)
      check(run_norm(*make_backend(default_backend()), norm.build, data, true));
  }
}

// A row has the same y, statistics and dx whichever rows it is among.
inline void check_rows_alone(const RowNorm& norm) {
  for (std::int64_t n : {2, 17, 128, 600, 1000, 2500}) {
    const NormCase c{.groups = 43, .n = n, .mean = 10};
    const NormData data = row_data(norm, c);
    const NormResult all = run_row_norm(norm, data);
    for (std::int64_t first : {0, 1, 5, 42}) {
      CAPTURE(c.text());
      CAPTURE(first);
      NormCase some = c;
      some.groups = std::min<std::int64_t>(7, c.groups - first);
      NormData taken = row_data(norm, some);
      for (std::int64_t i = 0; i < some.groups * n; ++i) {  // in the opposite order
        const std::int64_t from = (first + some.groups - 1 - i / n) * n + i % n;
        taken.x.as<double>()[std::size_t(i)] = data.x.at(from);
        taken.dy.as<double>()[std::size_t(i)] = data.dy.at(from);
      }
      const NormResult got = run_row_norm(norm, taken);
      for (std::int64_t k = 0; k < some.groups; ++k) {
        const std::int64_t from = first + some.groups - 1 - k;
        CHECK(same_bits(got.outputs[NormOutput::kY], k * n, all.outputs[NormOutput::kY], from * n,
                        n));
        for (std::size_t j = NormOutput::kY + 1; j < all.outputs.size(); ++j) {
          CHECK(same_bits(got.outputs[j], k, all.outputs[j], from, 1));
        }
        CHECK(same_bits(got.gradients[AffineGradient::kDx], k * n,
                        all.gradients[AffineGradient::kDx], from * n, n));
      }
    }
  }
}

// Sizes from 1e-30 to FLT_MAX / 4, zeros and constants are handled, and a NaN or Inf stays in its
// row.
inline void check_special_rows(const RowNorm& norm) {
  enum { kNormal, kNan, kInfinite, kTiny, kZero, kConstant, kHuge, kLargest, kAway, kSpecials };
  for (std::int64_t n : {2, 37, 1025}) {
    for (double eps : {1e-1, 1e-5, 1e-12}) {
      const NormCase c{.groups = kSpecials, .n = n, .eps = eps};
      NormData data = row_data(norm, c);
      const Tensor z = random_normal(Shape{n}, 8);
      const double largest = std::numeric_limits<float>::max() / 4;
      set_group(data, c, kTiny, [&](auto e) { return 1e-30 * z.at(e); });
      set_group(data, c, kZero, [](auto) { return 0; });
      set_group(data, c, kConstant, [](auto) { return 5.3; });
      set_group(data, c, kHuge, [&](auto e) { return 1e30 * z.at(e); });
      set_group(data, c, kLargest, [&](auto e) { return e % 2 ? largest : -largest; });
      set_group(data, c, kAway, [&](auto e) { return 1e6 + z.at(e); });
      const NormResult finite = run_row_norm(norm, data);
      if (norm.centred) CHECK(finite.outputs[NormOutput::kY].at(c.at(kConstant, n / 2)) == 0);
      compare_row_norm(norm, c, data);
      data.x.as<double>()[std::size_t(c.at(kNan, n / 2))] = NAN;
      data.x.as<double>()[std::size_t(c.at(kInfinite, n - 1))] = INFINITY;
      const NormResult got = run_row_norm(norm, data);
      CAPTURE(c.text());
      for (std::int64_t k = 0; k < c.groups; ++k) {
        CAPTURE(k);
        for (std::int64_t i = c.at(k, 0); i <= c.at(k, n - 1); ++i) {
          const double y = got.outputs[NormOutput::kY].at(i),
                       dx = got.gradients[AffineGradient::kDx].at(i);
          if (k == kNan) CHECK((std::isnan(y) && std::isnan(dx)));
          if (k == kNan || k == kInfinite) continue;
          CHECK(y == finite.outputs[NormOutput::kY].at(i));
          CHECK(dx == finite.gradients[AffineGradient::kDx].at(i));
        }
      }
      CHECK(std::isnan(got.outputs[NormOutput::kY].at(c.at(kInfinite, n - 1))));
    }
  }
}

// The tested backend on a few sizes, for an option of a norm whose other options are checked in
// full.
inline void check_few_rows(const RowNorm& norm) {
  constexpr std::pair<double, double> kMoments[] = {{0, 1}, {1e6, 1}, {100, 0.01}, {0, 1e-4}};
  for (std::int64_t n : {2, 3, 37, 257, 1025, 4099}) {
    for (const auto& [mean, deviation] : kMoments) {
      const NormCase c{.groups = 9, .n = n, .mean = mean, .deviation = deviation};
      compare_row_norm(norm, c, row_data(norm, c));
    }
  }
  check_special_rows(norm);
}

// `build` and its definition `composed` of elementary ops agree, forward and backward. Both read
// only x.
inline void check_composed_rows(const NormBuild& build, const NormBuild& composed) {
  for (const Shape& shape : {Shape{3, 7}, Shape{4, 2}, Shape{33, 35}}) {
    const auto run = [&](const NormBuild& of) {
      OpCase c;
      c.inputs.push_back(random_normal(shape, 1, 0.5, 2));
      c.build = [of](Graph& g, const std::vector<Value>& in) {
        return std::vector{of(g, {in[0], {}, {}, {}}, 1e-2)};
      };
      return run_reference(c);
    };
    const Results got = run(build), expected = run(composed);
    for (const char* name : {"y0", "d0"}) check_close(got.at(name), expected.at(name));
  }
}

}  // namespace keel::test
