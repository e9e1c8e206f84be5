// Shared code of floating-point instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace keel::ptx {

// A float32 operation that makes NaN makes this one.
inline constexpr std::uint32_t kNan = 0x7fffffff;

inline float canonical(float x) { return x == x ? x : std::bit_cast<float>(kNan); }
// For float64, PTX says only that a NaN is a NaN; it stays what the host makes.
inline double canonical(double x) { return x; }

// A subnormal number becomes a zero of its sign.
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

}  // namespace keel::ptx
