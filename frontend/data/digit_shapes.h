// The skeletons of the built-in digits: several ways to write each one, as curves through knots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace keel::data {

enum class Join : std::uint8_t {
  kSmooth,  // the curve passes with a continuous tangent
  kCorner,  // the direction breaks; two corners in a row are joined by a straight line
  kStart,   // the pen comes down: a new stroke
};

// Hundredths of the digit's height: x to the right of its axis, y down from its top.
struct Knot {
  std::int8_t x, y;
  Join join = Join::kSmooth;
};

using Glyph = std::span<const Knot>;  // begins with kStart
inline constexpr std::size_t kMaxKnots = 10;

// The ways to write a digit 0..9.
std::span<const Glyph> glyphs_of(int digit);

}  // namespace keel::data
