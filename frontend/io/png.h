// Grey pictures as PNG files (W3C, Portable Network Graphics, third edition).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace keel::io {

// The bytes of a PNG file of `width` x `height` pixels, 0 black to 255 white, row by row from the
// top. Throws Error{kUsage} for a size below 1 or beyond 2^31 - 1, or a wrong number of pixels.
std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height);

}  // namespace keel::io
