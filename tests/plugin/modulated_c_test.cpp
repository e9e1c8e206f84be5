// keel/norm.h: layer norm whose scale and shift belong to a sequence (adaLN-Zero) is layer_norm of
// each sequence, with the gain 1 + scale and the bias shift, by one plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/plugin/c_plan.h"

namespace keel::test {
namespace {

constexpr std::int64_t kSequences = 2, kTokens = 3, kWidth = 37;
constexpr double kEps = 1e-6;

// xhat of one row.
std::vector<double> standardized(std::span<const double> row) {
  double mean = 0, square = 0;
  for (const double v : row) mean += v / double(kWidth);
  for (const double v : row) square += (v - mean) * (v - mean) / double(kWidth);
  std::vector<double> xhat;
  for (const double v : row) xhat.push_back((v - mean) / std::sqrt(square + kEps));
  return xhat;
}

// Part s of a tensor's equal parts.
Tensor part_of(const Tensor& all, std::int64_t s, const Shape& shape) {
  Tensor part(DType::kF64, shape);
  const auto n = part.as<double>().size();
  std::copy_n(all.as<double>().begin() + s * std::int64_t(n), n, part.as<double>().begin());
  return part;
}

TEST_CASE("norm.h: adaLN-Zero is layer_norm of each sequence with a gain and bias of its own") {
  const Shape rows{kTokens, kWidth}, row{kWidth};
  const Tensor x = drawn({kSequences, kTokens, kWidth}, 1).to(DType::kF64),
               dy = drawn({kSequences, kTokens, kWidth}, 2).to(DType::kF64),
               scale = drawn({kSequences, kWidth}, 3).to(DType::kF64),
               shift = drawn({kSequences, kWidth}, 4).to(DType::kF64);
  const TensorType of_rows{DType::kF64, rows}, of_row{DType::kF64, row},
      of_statistic{DType::kF64, {kTokens}};
  const Asked forward{"layer_norm", "eps=1e-06", {of_rows, of_row, of_row}, kHost};
  const Asked backward{"layer_norm_backward",
                       "eps=1e-06 wants_dbias=true",
                       {of_rows, of_row, of_statistic, of_statistic, of_rows},
                       kHost};
  for (std::int64_t s = 0; s < kSequences; ++s) {
    Tensor gain = part_of(scale, s, row);
    for (double& v : gain.as<double>()) v += 1;
    const Tensor bias = part_of(shift, s, row), x_s = part_of(x, s, rows),
                 dy_s = part_of(dy, s, rows);
    const auto y = run_once(forward, list_of(x_s.clone(), gain.clone(), bias.clone()));
    const auto d = run_once(
        backward, list_of(x_s.clone(), gain.clone(), y[1].clone(), y[2].clone(), dy_s.clone()));
    std::vector<double> dscale(kWidth), dshift(kWidth);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const auto at = std::size_t(t * kWidth);
      const std::vector<double> xhat = standardized(x_s.as<double>().subspan(at, kWidth));
      for (std::size_t i = 0; i < std::size_t(kWidth); ++i) {
        const auto of = std::size_t(s * kWidth) + i;
        const double modulated = xhat[i] * (1 + scale.as<double>()[of]) + shift.as<double>()[of];
        CHECK(y[0].as<double>()[at + i] == doctest::Approx(modulated).epsilon(1e-12));
        dscale[i] += dy_s.as<double>()[at + i] * xhat[i];
        dshift[i] += dy_s.as<double>()[at + i];
      }
    }
    for (std::size_t i = 0; i < std::size_t(kWidth); ++i) {
      CHECK(d[1].as<double>()[i] == doctest::Approx(dscale[i]).epsilon(1e-12));
      CHECK(d[2].as<double>()[i] == doctest::Approx(dshift[i]).epsilon(1e-12));
    }
  }
}

}  // namespace
}  // namespace keel::test
