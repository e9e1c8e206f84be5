#include "frontend/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace keel::nn {
namespace {

float unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// Two standard normals from two words, by Box and Muller. 1 - unit is exact and never zero.
void draw_pair(std::uint32_t a, std::uint32_t b, float* pair) {
  const float radius = std::sqrt(-2 * std::log(1 - unit(a)));
  const float angle = 2 * std::numbers::pi_v<float> * unit(b);
  pair[0] = radius * std::cos(angle);
  pair[1] = radius * std::sin(angle);
}

// Calls draw(words, four values) for every block of four elements.
template <class Draw>
Initializer fill(Draw draw) {
  return [draw](Tensor& value, const Philox& random) {
    Tensor drawn(DType::kF32, value.shape());
    const std::span<float> out = drawn.as<float>();
    for (std::size_t first = 0; first < out.size(); first += 4) {
      float four[4];
      draw(random.block(first / 4), four);
      std::copy_n(four, std::min<std::size_t>(4, out.size() - first), out.data() + first);
    }
    value = value.dtype() == DType::kF32 ? std::move(drawn) : drawn.to(value.dtype());
  };
}

}  // namespace

Initializer constant(double value) {
  return [value](Tensor& filled, const Philox&) {
    Tensor wide(DType::kF64, filled.shape());
    std::ranges::fill(wide.as<double>(), value);
    filled = filled.dtype() == DType::kF64 ? std::move(wide) : wide.to(filled.dtype());
  };
}

Initializer normal(double deviation) {
  return fill([d = float(deviation)](const Philox4& words, float* four) {
    draw_pair(words[0], words[1], four);
    draw_pair(words[2], words[3], four + 2);
    for (int i = 0; i < 4; ++i) four[i] *= d;
  });
}

Initializer uniform(double bound) {
  return fill([b = float(bound)](const Philox4& words, float* four) {
    for (std::size_t i = 0; i < 4; ++i) four[i] = b * (2 * unit(words[i]) - 1);
  });
}

Initializer lecun_normal(std::int64_t fan_in) { return normal(std::sqrt(1.0 / double(fan_in))); }
Initializer kaiming_normal(std::int64_t fan_in) { return normal(std::sqrt(2.0 / double(fan_in))); }
Initializer fan_in_uniform(std::int64_t fan_in) { return uniform(1 / std::sqrt(double(fan_in))); }

Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return uniform(gain * std::sqrt(6.0 / double(fan_in + fan_out)));
}

}  // namespace keel::nn
