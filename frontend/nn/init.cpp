#include "frontend/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "frontend/nn/orthogonal.h"

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

// Columns [first, first + width) of a (rows, cols) matrix.
struct Block {
  std::size_t rows, first, width, cols;

  // Element (row, column), of the block, in the whole matrix.
  std::size_t at(std::size_t row, std::size_t column) const { return row * cols + first + column; }
};

// Makes the rows of the block orthonormal, or its columns where these are fewer.
void orthonormalize_block(std::span<float> values, const Block& block, double gain) {
  const bool is_wide = block.rows <= block.width;
  RowMatrix m{std::min(block.rows, block.width), std::max(block.rows, block.width), {}};
  const auto place = [&](std::size_t i) {
    const std::size_t row = i / m.cols, column = i % m.cols;
    return is_wide ? block.at(row, column) : block.at(column, row);
  };
  m.values.resize(m.rows * m.cols);
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = values[place(i)];
  orthonormalize(m);
  for (std::size_t i = 0; i < m.values.size(); ++i) values[place(i)] = float(gain * m.values[i]);
}

}  // namespace

Initializer constant(double value) {
  return [value](Tensor& filled, const Philox&) {
    Tensor wide(DType::kF64, filled.shape());
    std::ranges::fill(wide.as<double>(), value);
    filled = filled.dtype() == DType::kF64 ? std::move(wide) : wide.to(filled.dtype());
  };
}

Initializer normal(double deviation, double mean) {
  return fill([d = float(deviation), m = float(mean)](const Philox4& words, float* four) {
    draw_pair(words[0], words[1], four);
    draw_pair(words[2], words[3], four + 2);
    for (int i = 0; i < 4; ++i) four[i] = m + d * four[i];
  });
}

Initializer uniform(double bound) {
  return fill([b = float(bound)](const Philox4& words, float* four) {
    for (std::size_t i = 0; i < 4; ++i) four[i] = b * (2 * unit(words[i]) - 1);
  });
}

Initializer with_unit_vectors(Initializer init, UnitVectors unit) {
  if (unit == UnitVectors::kNone) return init;
  return [init = std::move(init), unit](Tensor& value, const Philox& random) {
    init(value, random);
    const std::int64_t rows = value.shape()[0], cols = value.shape()[1];
    const bool of_rows = unit == UnitVectors::kRows;
    const std::int64_t vectors = of_rows ? rows : cols, length = of_rows ? cols : rows;
    Tensor wide = value.to(DType::kF64);
    const std::span<double> w = wide.as<double>();
    for (std::int64_t i = 0; i < vectors; ++i) {
      const auto at = [&](std::int64_t k) -> double& {
        return w[std::size_t(of_rows ? i * cols + k : k * cols + i)];
      };
      double squares = 0;
      for (std::int64_t k = 0; k < length; ++k) squares += at(k) * at(k);
      for (std::int64_t k = 0; k < length && squares > 0; ++k) at(k) /= std::sqrt(squares);
    }
    value = wide.to(value.dtype());
  };
}

Initializer lecun_normal(std::int64_t fan_in) { return normal(std::sqrt(1.0 / double(fan_in))); }
Initializer kaiming_normal(std::int64_t fan_in) { return normal(std::sqrt(2.0 / double(fan_in))); }
Initializer fan_in_uniform(std::int64_t fan_in) { return uniform(1 / std::sqrt(double(fan_in))); }

Initializer xavier_uniform(std::int64_t fan_in, std::int64_t fan_out, double gain) {
  return uniform(gain * std::sqrt(6.0 / double(fan_in + fan_out)));
}

Initializer orthogonal(double gain, std::int64_t blocks) {
  return [=](Tensor& value, const Philox& random) {
    const Shape& shape = value.shape();
    check(shape.rank() == 2 && blocks > 0 && shape[1] % blocks == 0, ErrorKind::kUsage,
          "orthogonal: expected (rows, columns) with columns a multiple of {}, got {}", blocks,
          shape.text());
    Tensor drawn(DType::kF32, shape);
    normal(1)(drawn, random);
    const auto rows = std::size_t(shape[0]), cols = std::size_t(shape[1]);
    const std::size_t width = cols / std::size_t(blocks);
    for (std::size_t first = 0; first < cols; first += width) {
      orthonormalize_block(drawn.as<float>(), {rows, first, width, cols}, gain);
    }
    value = value.dtype() == DType::kF32 ? std::move(drawn) : drawn.to(value.dtype());
  };
}

}  // namespace keel::nn
