// Theorem 2 of Xu et al. 2019: phi(y) = C (1 - k y) is the only scaling z = phi(y) y of normalized
// rows y whose mean(phi) is one constant for every y and whose |mean(z)| stays bounded for every
// width. It is checked on random rows and on a normalized row that is as skew as is easily made:
//     (2 r, -r, -r, 0, ...), r = sqrt(width / 6):   mean 0, variance 1, mean(y^3) = r
// The paper takes k = 1/10 because of Chebyshev's inequality (eq. 7), P(|y| < 1/k) >= 1 - k^2: then
// 1 - k y is negative, and turns the sign of y, for at most 1 % of the numbers. The inequality is
// checked on the same rows and on the two that use it up:
//     (1/k, -1/k, 0, ...), width 2 / k^2:   |y| >= 1/k for just k^2 of them
//     (sqrt(n), -1 / sqrt(n), ...), width n + 1:   the largest y that there is. Its sign turns from
//         n > 1/k^2 on, and with it k^2 / (1 + k^2) of the numbers at the most.
#include <algorithm>
#include <array>
#include <cmath>

#include "studies/lab.h"
#include "studies/list.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kScaledRows = 64;  // random rows; the skew one comes after them
constexpr double kC = kScalingC, kSlope = kScalingSlope;

using Phi = std::function<double(double)>;

// Third powers of normal numbers, and the skew row.
Tensor rows_of(std::int64_t width, std::uint64_t seed) {
  const double r = std::sqrt(double(width) / 6);
  return mapped(normal({kScaledRows + 1, width}, seed, "x"), [=](double value, std::int64_t i) {
    const std::int64_t h = i - kScaledRows * width;
    return h < 0 ? value * value * value : h == 0 ? 2 * r : h < 3 ? -r : 0;
  });
}

// The same rows of each width, normalized by the engine; C (1 - k y) y as AdaNorm has it.
struct Rows {
  std::vector<Tensor> x, y, z;
};

Rows normalize(Backend& backend, std::uint64_t seed) {
  Rows rows;
  const Layer simple = norm_layer("layernorm_simple{eps=0}");
  const Layer adaptive = norm_layer(fmt::format("adanorm{{eps=0,C={},k={}}}", kC, kSlope));
  for (std::int64_t width : kScalingWidths) {
    rows.x.push_back(rows_of(width, seed));
    rows.y.push_back(pass(backend, simple, rows.x.back(), rows.x.back()).y);
    rows.z.push_back(pass(backend, adaptive, rows.x.back(), rows.x.back()).y);
  }
  return rows;
}

ScalingNumbers judge(const Rows& rows, const Phi& phi) {
  ScalingNumbers numbers{INFINITY, -INFINITY, {}};
  for (const Tensor& y : rows.y) {
    const Tensor factor = mapped(y, [&](double value, std::int64_t) { return phi(value); });
    for (std::int64_t i = 0; i <= kScaledRows; ++i) {
      take_smallest(numbers.low, mean(row(factor, i)));
      take_largest(numbers.high, mean(row(factor, i)));
    }
    numbers.skew.push_back(mean_product(row(factor, kScaledRows), row(y, kScaledRows)));
  }
  return numbers;
}

void add_adanorm(const Rows& rows, Result& result) {
  double skew = 0, formula = 0, mean_z = 0;
  for (std::size_t w = 0; w < rows.y.size(); ++w) {
    const Tensor &x = rows.x[w], &y = rows.y[w], &z = rows.z[w];
    const Tensor expected =
        mapped(y, [](double value, std::int64_t) { return kC * (1 - kSlope * value) * value; });
    take_largest(skew, largest_difference(row(x, kScaledRows), row(y, kScaledRows)));
    for (std::int64_t i = 0; i <= kScaledRows; ++i) {
      const double size = length(row(expected, i));
      take_largest(formula, largest_difference(row(z, i), row(expected, i)) / size);
      take_largest(mean_z, std::abs(mean(row(z, i)) + kC * kSlope));
    }
  }
  judge_adanorm({skew, formula, mean_z}, result);
}

void add_examples(const Rows& rows, Result& result) {
  const ScalingNumbers linear = judge(rows, [](double y) { return kC * (1 - kSlope * y); });
  const ScalingNumbers square =
      judge(rows, [](double y) { return kC * (1 - kSlope * y) + 0.3 * (y * y - 1); });
  const ScalingNumbers sine = judge(rows, [](double y) { return 1 + 0.2 * std::sin(y); });
  Table table{"mean(z) of the skew row for each width, and the spread of mean(phi) over all rows",
              {{"phi", "16", "64", "256", "1024", "4096", "spread"}}};
  const auto add = [&](const std::string& name, const ScalingNumbers& numbers) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells.push_back(name);
    for (double value : numbers.skew) cells.push_back(fmt::format("{:.2f}", value));
    cells.push_back(fmt::format("{:.1e}", numbers.spread()));
  };
  add("2 (1 - 0.1 y)", linear);
  add("2 (1 - 0.1 y) + 0.3 (y^2 - 1)", square);
  add("1 + 0.2 sin y", sine);
  result.tables.push_back(std::move(table));
  judge_examples({linear, square, sine}, result);
}

// Coefficients within 1, the leading one at least 0.1 away from 0.
Phi polynomial(int degree, std::uint64_t number, const Philox& random) {
  std::array<double, 5> c{};
  for (int p = 0; p <= degree; ++p) {
    c[std::size_t(p)] = 2 * random.uniform(8 * number + std::uint64_t(p)) - 1;
  }
  double& leading = c[std::size_t(degree)];
  leading = std::copysign(0.1 + 0.9 * std::abs(leading), leading);
  return [c](double y) { return c[0] + y * (c[1] + y * (c[2] + y * (c[3] + y * c[4]))); };
}

// A leading coefficient of 0.1 makes mean(z) of degree 2 grow by 2.4 from width 16 to 4096, and the
// spread of mean(phi) of degree 3 at least as large; rounding stays below 1e-9 of either.
void add_polynomials(const Rows& rows, std::uint64_t seed, Result& result) {
  Table table{"random polynomials, 20 of each degree",
              {{"degree", "mean(phi) constant", "mean(z) bounded", "both"}}};
  for (int degree = 0; degree <= 4; ++degree) {
    const Philox random(seed, stream_of("polynomials"), std::uint32_t(degree));
    int constant = 0, bounded = 0, both = 0;
    for (std::uint64_t n = 0; n < std::uint64_t(kPolynomials); ++n) {
      const ScalingNumbers numbers = judge(rows, polynomial(degree, n, random));
      const bool is_constant = numbers.is_constant(), is_bounded = numbers.is_bounded();
      constant += is_constant;
      bounded += is_bounded;
      both += is_constant && is_bounded;
    }
    table.rows.push_back({fmt::format("{}", degree), fmt::format("{}", constant),
                          fmt::format("{}", bounded), fmt::format("{}", both)});
    judge_polynomials(degree, both, result);
  }
  result.tables.push_back(std::move(table));
}

// Signs are those of adanorm's output, with C = 1.
SignNumbers count_signs(Backend& backend, double k, const Tensor& x) {
  const Tensor y = pass(backend, norm_layer("layernorm_simple{eps=0}"), x, x).y;
  const Tensor z = pass(backend, norm_layer(fmt::format("adanorm{{eps=0,k={}}}", k)), x, x).y;
  SignNumbers numbers;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    double beyond = 0, turned = 0;
    const std::span<const double> ys = row(y, i), zs = row(z, i);
    for (std::size_t h = 0; h < ys.size(); ++h) {
      beyond += !(std::abs(ys[h]) * k < 1 - kRounding);
      turned += !(ys[h] * zs[h] >= -kRounding * ys[h] * ys[h]);
    }
    take_largest(numbers.beyond, beyond / double(ys.size()));
    take_largest(numbers.turned, turned / double(ys.size()));
  }
  return numbers;
}

// One row: these numbers, and `rest` in all other places.
Tensor row_of(std::int64_t width, const std::vector<double>& first, double rest) {
  return mapped(Tensor(DType::kF64, {1, width}), [&](double, std::int64_t i) {
    return i < std::ssize(first) ? first[std::size_t(i)] : rest;
  });
}

void add_turned_signs(Backend& backend, const Rows& rows, Result& result) {
  Table table{"the largest share of a row: |y| >= 1 / k, and signs turned by 1 - k y",
              {{"k", "k^2", "|y| >= 1/k", "pair", "turned", "spike of 1/k^2 + 1", "+ 2"}}};
  for (const double k : kSignSlopes) {
    SignNumbers all;
    for (const Tensor& x : rows.x) {
      const SignNumbers some = count_signs(backend, k, x);
      take_largest(all.beyond, some.beyond);
      take_largest(all.turned, some.turned);
    }
    const auto longest = std::int64_t(std::lround(1 / (k * k))) + 1;
    const auto of_row = [&](std::int64_t width, const std::vector<double>& first) {
      return count_signs(backend, k, row_of(width, first, 0));
    };
    all.pair = of_row(2 * (longest - 1), {1, -1}).beyond;
    all.spike = of_row(longest, {1}).turned;
    all.longer_spike = of_row(longest + 1, {1}).turned;
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (double value : {k, k * k, all.beyond, all.pair, all.turned, all.spike, all.longer_spike}) {
      cells.push_back(fmt::format("{:.4g}", value));
    }
    judge_signs(k, all, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

Result theorem2(const Options& options) {
  const Rows rows = normalize(options.backend, options.seed);
  Result result;
  add_adanorm(rows, result);
  add_examples(rows, result);
  add_polynomials(rows, options.seed, result);
  add_turned_signs(options.backend, rows, result);
  return result;
}

}  // namespace keel::study
