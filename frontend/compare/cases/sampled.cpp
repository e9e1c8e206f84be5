#include "frontend/compare/cases/sampled.h"

#include <array>
#include <cmath>

namespace keel::compare {
namespace {

constexpr std::uint64_t kDrawSeed = 42;

// One element of an input.
struct Place {
  std::uint64_t element;
  std::int64_t row, column, width;
};

double hostile(std::int64_t i, double normal) {
  const HostileMoments moments = hostile_moments(i);
  return moments.mean + moments.deviation * normal;
}

double mixed(const Philox& random, std::uint64_t e) {
  const double normal = random.normal(e);
  switch (e % 4) {
    case 0:
      return 200 * random.uniform(e) - 100;
    case 1:
      return normal;
    case 2:
      return 1e-3 * normal;
    default:
      return e % 16 == 3 ? 0 : normal;
  }
}

// A row of a mask without zeros: every second one of several.
bool is_whole(const Source& source, std::int64_t row) {
  return source.type.shape.rank() > 1 && row % 2 == 0;
}

double number(const Source& source, const Philox& random, const Place& at) {
  switch (source.sampled) {
    case Sampled::kNormal:
    case Sampled::kStep:
      return random.normal(at.element);
    case Sampled::kPositive:
      return 0.5 + std::abs(random.normal(at.element));
    case Sampled::kBelow:
      return random.below(at.element, static_cast<std::uint32_t>(source.below));
    case Sampled::kMask:
      return is_whole(source, at.row) || at.column < at.width - at.width / 3 ? 1 : 0;
    case Sampled::kScores:
      return 200 * random.uniform(at.element) - 100;
    case Sampled::kMixed:
      return mixed(random, at.element);
    case Sampled::kMagnitudes:
      return std::pow(10.0, 38 * random.uniform(at.element) - 30);
    case Sampled::kHostileRows:
      return hostile(at.row, random.normal(at.element));
    case Sampled::kHostileColumns:
      return hostile(at.column, random.normal(at.element));
  }
  return 0;
}

}  // namespace

HostileMoments hostile_moments(std::int64_t i) {
  constexpr auto kKinds = std::to_array<HostileMoments>({
      {0, 1},
      {1e4, 1},
      {3, 0},      // constant
      {0, 3e-3},   // a variance of about the usual eps, 1e-5
      {-1e6, 1},   // of which float32 keeps four bits of the deviation
      {0, 1e-3},   // a variance below eps
      {0, 0},      // zeros
      {0, 1e15},   // squares of 1e30
      {0, 1e-20},  // squares that no float32 holds
      {100, 1e-3},
      {0, 1e-39},  // subnormal
  });
  return kKinds[static_cast<std::size_t>(i) % kKinds.size()];
}

Tensor draw(const Source& source, std::int64_t step) {
  Tensor numbers(DType::kF64, source.type.shape);
  const Philox random(kDrawSeed, stream_of(source.name), static_cast<std::uint32_t>(step));
  const std::int64_t width = source.type.shape.rank() > 0 ? source.type.shape.back() : 1;
  std::uint64_t e = 0;
  for (double& v : numbers.as<double>()) {
    const std::int64_t row = std::int64_t(e) / width, column = std::int64_t(e) % width;
    v = source.sampled == Sampled::kStep ? double(step)
                                         : number(source, random, {e, row, column, width});
    ++e;
  }
  return numbers.to(source.type.dtype);
}

}  // namespace keel::compare
