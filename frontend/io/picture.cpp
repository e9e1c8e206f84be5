// Which form a picture has, and the binary forms of Netpbm: a header in text and then the pixels.
#include "frontend/io/picture.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/io/packed_file.h"
#include "frontend/io/picture_forms.h"
#include "frontend/io/visible_files.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n", kJpegStart = "\xff\xd8\xff";

// One byte of Deflate expands to at most 1032, and a pixel takes an eighth of a byte or more. In
// JPEG 64 pixels take a bit or, in arithmetic coding, a little less.
constexpr std::int64_t kMostPixelsOfByte = 8 * 1032;

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

}  // namespace

bool is_picture(const std::filesystem::path& path) {
  return std::ranges::find(kPictureEndings, lower_ending(path)) != std::end(kPictureEndings);
}

std::string picture_endings() { return fmt::format("{}", fmt::join(kPictureEndings, ", ")); }

Picture blank_picture(std::int64_t width, std::int64_t height, std::size_t bytes,
                      const std::string& name) {
  const bool is_fine = width >= 1 && height >= 1 && width <= kMaxPixels / height;
  check(is_fine, ErrorKind::kBadInput,
        "[picture] {}: expected 1 to {} pixels, got a width of {} and a height of {}", name,
        kMaxPixels, width, height);
  check(width * height <= kMostPixelsOfByte * std::int64_t(bytes), ErrorKind::kBadInput,
        "[picture] {}: expected more than {} bytes for {} x {} pixels", name, bytes, width, height);
  return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height))};
}

Picture parse_netpbm(std::string_view bytes, const std::string& name) {
  NetpbmHeader header(bytes, name);
  const std::int64_t width = header.number("the width"), height = header.number("the height");
  const std::int64_t largest = header.number("the largest value");
  Picture picture = blank_picture(width, height, bytes.size(), name);
  check(largest >= 1 && largest <= 255, ErrorKind::kBadInput,
        "[picture] {}: expected a largest value of 1 to 255, got {}", name, largest);
  const std::size_t repeats = bytes[1] == '5' ? 3 : 1, count = picture.pixels.size() / repeats;
  const std::string_view values = header.rest();
  check(values.size() >= count, ErrorKind::kBadInput,
        "[picture] {}: expected {} bytes after the header, got {}", name, count, values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t value = static_cast<unsigned char>(values[i]);
    check(value <= largest, ErrorKind::kBadInput,
          "[picture] {}: value {}: expected at most {}, the largest that its header names, got {}",
          name, i, largest, value);
    std::fill_n(picture.pixels.begin() + std::ptrdiff_t(i * repeats), repeats,
                static_cast<std::uint8_t>((value * 255 + largest / 2) / largest));
  }
  return picture;
}

Picture parse_picture(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kPngStart)) return parse_png(bytes, name);
  if (bytes.starts_with(kJpegStart)) return parse_jpeg(bytes, name);
  const bool is_netpbm = bytes.starts_with("P5") || bytes.starts_with("P6");
  check(is_netpbm, ErrorKind::kBadInput,
        "[picture] {}: expected a PNG or JPEG file, or a PGM or PPM file in binary form (P5 or "
        "P6), got other bytes",
        name);
  return parse_netpbm(bytes, name);
}

Picture read_picture(const std::filesystem::path& path) {
  return parse_picture(read_file(path, kMaxPictureBytes), path.string());
}

}  // namespace keel::io
