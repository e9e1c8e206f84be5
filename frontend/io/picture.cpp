// libpng decodes PNG. The binary forms of Netpbm are a header in text and then the pixels.
#include "frontend/io/picture.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "frontend/io/packed_file.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";

// One byte of Deflate expands to at most 1032, and a pixel takes an eighth of a byte or more.
constexpr std::int64_t kMostPixelsOfByte = 8 * 1032;

std::size_t checked_bytes(std::int64_t width, std::int64_t height, const std::string& name) {
  const bool is_fine = width >= 1 && height >= 1 && width <= kMaxPixels / height;
  check(is_fine, ErrorKind::kBadInput,
        "[picture] {}: expected 1 to {} pixels, got a width of {} and a height of {}", name,
        kMaxPixels, width, height);
  return static_cast<std::size_t>(3 * width * height);
}

// libpng's image, freed at the end.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  void expect(int success, const std::string& name) const {
    check(success != 0, ErrorKind::kBadInput, "[picture] {}: expected a whole PNG file, got: {}",
          name, message);
  }
};

// Looks at the header, which is the first chunk: releases of libpng before 1.6.51 write beyond the
// pixels of an interlaced file of 16 bits (CVE-2025-65018).
void expect_safe_png(std::string_view bytes, const std::string& name) {
  constexpr std::size_t kType = 12, kDepth = 24, kInterlace = 28;
  check(bytes.size() > kInterlace, ErrorKind::kBadInput,
        "[picture] {}: expected a whole PNG file, got {} bytes", name, bytes.size());
  const std::string_view type = bytes.substr(kType, 4);
  check(type == "IHDR", ErrorKind::kBadInput, "[picture] {}: byte {}: expected IHDR, got {:?}",
        name, kType, type);
  check(bytes[kDepth] != 16 || bytes[kInterlace] == 0, ErrorKind::kBadInput,
        "[picture] {}: expected a PNG file of 8 bits, or one that is not interlaced, got one of 16 "
        "bits that is",
        name);
}

Picture parse_png(std::string_view bytes, const std::string& name) {
  expect_safe_png(bytes, name);
  PngImage image;
  image.expect(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), name);
  Picture picture{image.width, image.height};
  const std::size_t size = checked_bytes(picture.width, picture.height, name);
  check(picture.width * picture.height <= kMostPixelsOfByte * std::ssize(bytes),
        ErrorKind::kBadInput, "[picture] {}: expected more than {} bytes for {} x {} pixels", name,
        bytes.size(), picture.width, picture.height);
  picture.pixels.resize(size);
  image.format = PNG_FORMAT_RGB;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const png_color black{0, 0, 0};
  image.expect(png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr), name);
  return picture;
}

// The numbers of a Netpbm header, with blanks and comments between them.
class NetpbmHeader {
 public:
  NetpbmHeader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    expect_blank_after("P5 or P6");
  }

  std::int64_t number(std::string_view what) {
    skip_blanks();
    std::int64_t value = 0;
    const std::size_t first = at_;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      check(at_ - first < 9, ErrorKind::kBadInput,
            "[picture] {}: byte {}: expected at most 9 digits for {}", name_, at_, what);
      value = 10 * value + (bytes_[at_] - '0');
    }
    check(at_ > first, ErrorKind::kBadInput, "[picture] {}: byte {}: expected {}", name_, at_,
          what);
    expect_blank_after(what);
    return value;
  }
  // The pixels, which begin after one blank, or after the line of a comment.
  std::string_view rest() const {
    std::size_t blank = at_;
    if (blank < bytes_.size() && bytes_[blank] == '#') blank = bytes_.find('\n', blank);
    return blank < bytes_.size() ? bytes_.substr(blank + 1) : std::string_view();
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  // A comment will do. Who reads on finds an early end.
  void expect_blank_after(std::string_view what) const {
    const bool ends = at_ == bytes_.size() || is_blank(bytes_[at_]) || bytes_[at_] == '#';
    check(ends, ErrorKind::kBadInput, "[picture] {}: byte {}: expected a blank after {}", name_,
          at_, what);
  }
  void skip_blanks() {
    for (; at_ < bytes_.size(); ++at_) {
      if (bytes_[at_] == '#') at_ = std::min(bytes_.find('\n', at_), bytes_.size() - 1);
      if (!is_blank(bytes_[at_])) return;
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 2;  // after P5 or P6
};

Picture parse_netpbm(std::string_view bytes, const std::string& name) {
  NetpbmHeader header(bytes, name);
  Picture picture{header.number("the width"), header.number("the height")};
  const std::int64_t largest = header.number("the largest value");
  const std::size_t size = checked_bytes(picture.width, picture.height, name);
  check(largest >= 1 && largest <= 255, ErrorKind::kBadInput,
        "[picture] {}: expected a largest value of 1 to 255, got {}", name, largest);
  const std::size_t repeats = bytes[1] == '5' ? 3 : 1;
  const std::string_view values = header.rest();
  check(values.size() >= size / repeats, ErrorKind::kBadInput,
        "[picture] {}: expected {} bytes after the header, got {}", name, size / repeats,
        values.size());
  picture.pixels.reserve(size);
  for (const char c : values.substr(0, size / repeats)) {
    const std::int64_t value = std::min<std::int64_t>(static_cast<unsigned char>(c), largest);
    picture.pixels.insert(picture.pixels.end(), repeats,
                          static_cast<std::uint8_t>((value * 255 + largest / 2) / largest));
  }
  return picture;
}

}  // namespace

bool is_picture(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png" || ending == ".pgm" || ending == ".ppm";
}

Picture parse_picture(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kPngStart)) return parse_png(bytes, name);
  const bool is_netpbm = bytes.starts_with("P5") || bytes.starts_with("P6");
  check(is_netpbm, ErrorKind::kBadInput,
        "[picture] {}: expected a PNG file, or a PGM or PPM file in binary form (P5 or P6), got "
        "other bytes",
        name);
  return parse_netpbm(bytes, name);
}

Picture read_picture(const std::filesystem::path& path) {
  return parse_picture(read_file(path, kMaxPictureBytes), path.string());
}

}  // namespace keel::io
