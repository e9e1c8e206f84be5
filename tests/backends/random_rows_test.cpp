// Ops that draw random numbers give rows the same numbers however an update is split into batches
// and however far its rows are padded.
#include <algorithm>
#include <cstring>

#include "src/ops/dropout.h"
#include "src/ops/norm_noise.h"
#include "src/ops/random_normal.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// Adds what draws by the key, forward and backward.
using Draw = std::function<std::vector<Value>(Graph& g, Value x, const RandomKey& key)>;

std::vector<Value> drop(Graph& g, Value x, const RandomKey& key) {
  const DropoutAttrs attrs{0.3, 5, 6};
  return {g.add(kDropout, {x, key.step, key.first_row}, attrs),
          g.add(kDropoutBackward, {x, key.step, key.first_row}, attrs)};
}

std::vector<Value> add_normal(Graph& g, Value x, const RandomKey& key) {
  return {ops::random_normal(g, g.type(x), key, 5)};
}

// Noise on images, or on tokens of which `positions` are a row of the batch.
Draw make_noise(std::int64_t positions = 1) {
  return [=](Graph& g, Value x, const RandomKey& key) -> std::vector<Value> {
    const NormNoiseAttrs attrs{.seed = 5, .stream = 6, .positions = positions};
    return {g.add(kNormNoise, {x, key.step, key.first_row, {}}, attrs),
            g.add(kNormNoiseBackward, {x, key.step, key.first_row, {}}, attrs)};
  };
}

std::vector<Tensor> run(const Draw& draw, const Tensor& x, std::int32_t first_row) {
  OpCase c;
  c.inputs.push_back(x.clone());
  for (std::int32_t i : {7, first_row}) c.inputs.push_back(Tensor::of<std::int32_t>({}, {i}));
  c.gradients = false;
  c.build = [&](Graph& g, const std::vector<Value>& v) { return draw(g, v[0], {v[1], v[2]}); };
  const Results results = run_tested(c);
  std::vector<Tensor> outputs;
  for (const auto& [name, value] : results) outputs.push_back(value.clone());
  return outputs;
}

// Rows [first, first + count) of a tensor.
Tensor rows_of(const Tensor& x, std::int64_t first, std::int64_t count) {
  Tensor rows(x.dtype(), x.shape().with(0, count));
  const std::int64_t row = x.bytes() / x.shape()[0];
  std::memcpy(rows.data(), static_cast<const std::byte*>(x.data()) + first * row,
              std::size_t(count * row));
  return rows;
}

void check_same_bytes(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.type() == expected.type());
  CHECK(std::memcmp(got.data(), expected.data(), std::size_t(got.bytes())) == 0);
}

// Splits 64 rows of the batch, each `tokens` rows of x, into four times 16, and tries some in
// between.
void check_split(const Draw& draw, const Shape& shape, std::int64_t tokens = 1) {
  CAPTURE(shape.text());
  REQUIRE(shape[0] == 64 * tokens);
  const Tensor x = random_f32(shape, 1);
  const std::vector<Tensor> whole = run(draw, x, 0);
  for (const auto& [first, count] : {std::pair{0, 16}, {16, 16}, {32, 16}, {48, 16}, {3, 8}}) {
    CAPTURE(first);
    const std::vector<Tensor> part =
        run(draw, rows_of(x, first * tokens, count * tokens), std::int32_t(first));
    REQUIRE(part.size() == whole.size());
    for (std::size_t j = 0; j < whole.size(); ++j) {
      check_same_bytes(part[j], rows_of(whole[j], first * tokens, count * tokens));
    }
  }
}

TEST_CASE("backend random rows: four batches of 16 rows draw what one of 64 does") {
  for_each_target([] {
    for (const std::int64_t width : {1, 2, 3, 4, 7, 10, 32, 33, 64, 100, 257, 1024}) {
      check_split(drop, {64, width});
      check_split(add_normal, {64, width});
      check_split(make_noise(), {64, width});
      check_split(make_noise(5), {64 * 5, width}, 5);
    }
    check_split(drop, {64, 5, 7});
    check_split(drop, {64});
    check_split(add_normal, {64});
    check_split(make_noise(), {64, 3, 5, 5});
  });
}

// Rows of 5 real positions get the same numbers without padding and with 4 positions of it.
void check_padding(const Draw& alone, const Draw& padded, const Shape& features) {
  constexpr std::int64_t kRows = 6, kReal = 5, kPadded = 9;
  const std::int64_t width = features.elements();
  const auto shape = [&](std::int64_t positions) {
    return features.rank() == 1 ? Shape{kRows * positions, width} : Shape{kRows, positions, width};
  };
  Tensor ones(DType::kF32, shape(kReal)), more(DType::kF32, shape(kPadded));
  std::ranges::fill(ones.as<float>(), 1.0f);
  std::ranges::fill(more.as<float>(), 1.0f);
  const std::vector<Tensor> expected = run(alone, ones, 16), got = run(padded, more, 16);
  for (std::size_t j = 0; j < expected.size(); ++j) {
    for (std::int64_t i = 0; i < expected[j].elements(); ++i) {
      const std::int64_t row = i / (kReal * width), e = i % (kReal * width);
      CAPTURE(i);
      CHECK(got[j].at(row * kPadded * width + e) == expected[j].at(i));
    }
  }
}

TEST_CASE("backend random rows: padding after a row's end does not change the row") {
  for (const std::int64_t width : {1, 3, 4, 33}) {
    CAPTURE(width);
    check_padding(drop, drop, {1, width});
    check_padding(add_normal, add_normal, {1, width});
    check_padding(make_noise(5), make_noise(9), {width});
  }
}

TEST_CASE("backend random rows: rows differ from each other") {
  Tensor x(DType::kF32, {2, 64});
  std::ranges::fill(x.as<float>(), 1.0f);
  for (const Draw& draw : {Draw(drop), Draw(add_normal), make_noise()}) {
    const Tensor y = run(draw, x, 0)[0].clone();
    std::int64_t same = 0;
    for (std::int64_t e = 0; e < 64; ++e) same += y.at(e) == y.at(64 + e);
    CHECK(same < 56);  // independent masks agree at 37 of 64 places, give or take 4
  }
}

}  // namespace
}  // namespace keel::test
