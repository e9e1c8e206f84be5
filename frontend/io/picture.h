// Pictures from files: PNG (W3C, Portable Network Graphics, third edition), JPEG (ITU-T T.81, 8
// bits), and the binary forms of PGM and PPM (Netpbm, P5 and P6).
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

// The endings of files for read_picture, in lower case.
inline constexpr std::string_view kPictureEndings[] = {".png", ".jpg", ".jpeg", ".pgm", ".ppm"};
// Whether a file's name has one of them, in upper or lower case.
bool is_picture(const std::filesystem::path& path);
// All of them, for messages: ".png, .jpg, ...".
std::string picture_endings();

// Reads a picture; its first bytes say which form it has. Pixels are the stored values, in 8 bits a
// colour: of 16 bits the upper 8, alpha and tRNS without effect, and no regard to gAMA, profiles
// and the orientation in Exif, which is what Pillow's convert("RGB") gives. Throws
// Error{kBadInput}, beginning with `name`, for other bytes, for more than kMaxPixels pixels, for a
// value beyond the palette or the largest one of a header, and for damage or an early end.
Picture parse_picture(std::string_view bytes, const std::string& name);
// The same from a file, plain or packed. Throws as PackedFile, too.
Picture read_picture(const std::filesystem::path& path);

}  // namespace keel::io
