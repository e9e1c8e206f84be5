// Pictures from files: PNG (W3C, Portable Network Graphics, third edition), and the binary forms of
// PGM and PPM (Netpbm, P5 and P6).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace keel::io {

// A picture of any size in red, green and blue, 0 to 255 each. In a grey one the three are equal.
struct Picture {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels = {};  // (height, width, 3), from the top

  std::uint8_t at(std::int64_t y, std::int64_t x, std::int64_t colour) const {
    return pixels[static_cast<std::size_t>((y * width + x) * 3 + colour)];
  }
};

// A picture may have at most so many pixels, and its file at most so many bytes.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 26;
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{1} << 28;

// Whether a file is one for read_picture, by the end of its name: .png, .pgm or .ppm, in upper or
// lower case.
bool is_picture(const std::filesystem::path& path);

// Reads a picture; its first bytes say which form it has. Transparent pixels lie before black. 16
// bits a colour become 8. Throws Error{kBadInput}, beginning with `name`, for other bytes, for more
// than kMaxPixels pixels, for an interlaced PNG of 16 bits, and for damage or an early end.
Picture parse_picture(std::string_view bytes, const std::string& name);
// The same from a file, plain or packed. Throws as PackedFile, too.
Picture read_picture(const std::filesystem::path& path);

}  // namespace keel::io
