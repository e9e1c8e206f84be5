#include "tests/support/norm_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "backends/backends.h"
#include "tests/support/graph_runner.h"

namespace keel::test {
namespace {

constexpr double kFloatEps = std::numeric_limits<float>::epsilon();

std::int64_t least_divisor(std::int64_t n) {
  for (std::int64_t a = 2; a * a <= n; ++a) {
    if (n % a == 0) return a;
  }
  return std::max<std::int64_t>(n, 1);
}

// Element e of a stream of standard normal numbers; drawn once and used again after 2^18.
double normal(std::uint32_t stream, std::size_t e) {
  static const Tensor pool = random_normal(Shape{(1 << 18) - 5}, 7);
  return pool.as<double>()[(e + 7919 * stream) % pool.as<double>().size()];
}

// Each number is rounded to float.
Tensor float_normal(const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  Tensor result(DType::kF64, shape);
  std::size_t e = 0;
  for (double& v : result.as<double>()) v = double(float(mean + deviation * normal(stream, e++)));
  return result;
}

// |got - expected| / scale in units of eps; NaN must be met by NaN.
double error(double got, double expected, double scale) {
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) == std::isnan(expected) ? 0 : INFINITY;
  }
  const double largest = std::numeric_limits<float>::max();
  if (std::abs(expected) > largest) return std::abs(got) >= largest ? 0 : INFINITY;
  return got == expected ? 0 : std::abs(got - expected) / (scale * kFloatEps);
}

struct Group {
  double mean, rstd, dx_scale;
};

double gain_of(const NormCase& c, const NormData& data, std::int64_t k, std::int64_t e) {
  return data.gain ? data.gain->at(c.parameter(k, e)) : 1;
}

Group group_of(const NormCase& c, const NormData& data, const NormResult& expected,
               std::int64_t k) {
  const double mean = expected.outputs[1].at(k), rstd = expected.outputs[2].at(k);
  double largest_g = 0, largest_xhat = 0, sum = 0, products = 0;
  for (std::int64_t e = 0; e < c.n; ++e) {
    const double g = data.dy.at(c.at(k, e)) * gain_of(c, data, k, e);
    const double xhat = (data.x.at(c.at(k, e)) - mean) * rstd;
    largest_g = std::max(largest_g, std::abs(g));
    largest_xhat = std::max(largest_xhat, std::abs(xhat));
    sum += g;
    products += g * xhat;
  }
  const double n = double(c.n);
  const double slope_term = largest_xhat * std::abs(products / n);
  return {mean, rstd, rstd * std::max({largest_g, std::abs(sum / n), slope_term})};
}

bool is_thorough() { return std::getenv("KEEL_THOROUGH") != nullptr; }

// Whether kernels run on an emulator, a thousand times slower than on the device it stands for.
bool is_emulated() {
  static const bool emulated =
      make_backend(default_backend())->description().find("emulator") != std::string::npos;
  return emulated;
}

// On an emulator, the cases of moderate size: a third of them, all the same every time.
std::vector<NormCase> bearable(std::vector<NormCase> cases) {
  if (!is_emulated() || is_thorough()) return cases;
  std::vector<NormCase> few;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const NormCase& c = cases[i];
    if (c.groups * c.n <= 50000 && c.groups <= 1000 && i % 3 == 0) few.push_back(c);
  }
  return few;
}

}  // namespace

std::string NormCase::text() const {
  return fmt::format("layout={} groups={} n={} mean={} deviation={} eps={} gain={} bias={}",
                     int(layout), groups, n, mean, deviation, eps, gain, bias);
}

std::int64_t NormCase::at(std::int64_t k, std::int64_t e) const {
  if (layout == NormLayout::kRows) return k * n + e;
  if (layout == NormLayout::kColumns) return e * groups + k;
  const std::int64_t inner = n / least_divisor(n);
  return (e / inner * groups + k) * inner + e % inner;
}

Shape NormCase::shape() const {
  if (layout == NormLayout::kRows) return {groups, n};
  if (layout == NormLayout::kColumns) return {n, groups};
  return {least_divisor(n), groups, 1, n / least_divisor(n)};
}

Shape NormCase::parameter_shape() const { return {layout == NormLayout::kRows ? n : groups}; }

NormData make_data(const NormCase& c) {
  NormData data{float_normal(c.shape(), 1, c.mean, c.deviation),
                float_normal(c.shape(), 2, 0, 1),
                {},
                {},
                {},
                c.eps};
  if (c.gain) data.gain = float_normal(c.parameter_shape(), 3, 1, 0.2);
  if (c.bias) data.bias = float_normal(c.parameter_shape(), 4, 0, 0.2);
  for (int i = 0; i < c.states; ++i) {
    data.state.push_back(float_normal(c.parameter_shape(), 5, i == 0 ? 0 : 1, 0));
  }
  return data;
}

void set_group(NormData& data, const NormCase& c, std::int64_t k,
               const std::function<double(std::int64_t)>& value) {
  for (std::int64_t e = 0; e < c.n; ++e) {
    data.x.as<double>()[std::size_t(c.at(k, e))] = double(float(value(e)));
  }
}

NormErrors norm_errors(const NormCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected) {
  NormErrors errors;
  for (std::size_t j = 0; j < expected.outputs.size(); ++j) {
    for (std::int64_t i = 0; i < expected.outputs[j].elements(); ++i) {
      const double value = expected.outputs[j].at(i);
      const double deviation = j == 0 ? 0 : 1 / expected.outputs[2].at(i);
      const double scale = std::max({1.0, std::abs(value), deviation});
      errors.forward = std::max(errors.forward, error(got.outputs[j].at(i), value, scale));
    }
  }
  std::vector<double> gain_scale(std::size_t(c.parameter_shape().elements())),
      bias_scale = gain_scale;
  for (std::int64_t k = 0; k < c.groups; ++k) {
    const Group group = group_of(c, data, expected, k);
    for (std::int64_t e = 0; e < c.n; ++e) {
      const std::int64_t i = c.at(k, e);
      errors.dx = std::max(
          errors.dx, error(got.gradients[0].at(i), expected.gradients[0].at(i), group.dx_scale));
      const double dy = std::abs(data.dy.at(i)), xhat = (data.x.at(i) - group.mean) * group.rstd;
      gain_scale[std::size_t(c.parameter(k, e))] += dy * std::max(1.0, std::abs(xhat));
      bias_scale[std::size_t(c.parameter(k, e))] += dy;
    }
  }
  for (std::size_t p : {1, 2}) {
    const std::vector<double>& scale = p == 1 ? gain_scale : bias_scale;
    for (std::int64_t i = 0; i < expected.gradients[p].elements(); ++i) {
      errors.parameters = std::max(
          errors.parameters,
          error(got.gradients[p].at(i), expected.gradients[p].at(i), scale[std::size_t(i)]));
    }
  }
  return errors;
}

std::vector<NormCase> generated_cases(NormLayout layout) {
  constexpr std::int64_t kSizes[] = {1,   2,   3,   4,    17,   31,   32,   33,
                                     127, 257, 769, 1000, 1025, 4099, 16385};
  constexpr std::pair<double, double> kMoments[] = {{0, 1},      {100, 0.01}, {1e6, 1},   {1000, 1},
                                                    {-3e4, 0.5}, {0, 1e-4},   {1e-3, 1e3}};
  constexpr double kEps[] = {1e-5, 1e-1, 1e-12};
  std::vector<NormCase> cases;
  for (std::int64_t n : kSizes) {
    for (const auto& [mean, deviation] : kMoments) {
      for (int i = 0; i < 12; ++i) {
        const bool listed = n < 4000 ? i % 3 == std::int64_t(cases.size()) % 3 : i % 12 == 3;
        if (!listed && !is_thorough()) continue;
        cases.push_back({layout, is_thorough() ? 7 : 3, n, mean, deviation, kEps[i % 3],
                         i / 3 % 2 == 0, i / 6 == 0});
      }
    }
  }
  for (std::int64_t groups : {0, 1, 2, 7, 65535, 65536}) {
    for (std::int64_t n : {1, 3, 8}) cases.push_back({layout, groups, n, 1, 2});
  }
  return bearable(std::move(cases));
}

std::vector<NormCase> large_cases(NormLayout layout) {
  std::vector<NormCase> cases{{layout, 700, 257},    {layout, 65, 4099, 100, 0.01},
                              {layout, 300, 1000},   {layout, 130, 1030, 1e6, 1},
                              {layout, 3, 65536, 3}, {layout, 1100, 400}};
  if (layout == NormLayout::kRows) cases.push_back({layout, 20000, 40});
  return bearable(std::move(cases));
}

}  // namespace keel::test
