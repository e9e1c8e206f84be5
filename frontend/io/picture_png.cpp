// libpng decodes PNG. Where it fails it leaves by longjmp, so that functions which call setjmp have
// nothing to destroy.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "frontend/io/picture_forms.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr std::size_t kPngStartBytes = 8, kPngChunkBytes = 12;  // length, type and checksum
constexpr png_alloc_size_t kMostChunkBytes = 1 << 16;           // of memory; pixels are not counted

[[noreturn]] void fail_png(const std::string& name, const std::string& got) {
  fail(ErrorKind::kBadInput, "[picture] {}: expected a whole PNG file, got: {}", name, got);
}

std::uint32_t png_number(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

// Every chunk lies in the file, the first one is the header, and one marks the end: libpng believes
// what a chunk says of its length, and does not miss the end.
void expect_chunks(std::string_view bytes, const std::string& name) {
  for (std::size_t at = kPngStartBytes;;) {
    if (bytes.size() - at < kPngChunkBytes) {
      fail_png(name, fmt::format("no end mark (IEND) in {} bytes", bytes.size()));
    }
    const std::uint32_t length = png_number(bytes, at);
    const std::string_view type = bytes.substr(at + 4, 4);
    if (length > bytes.size() - at - kPngChunkBytes) {
      fail_png(name, fmt::format("a chunk {:?} of {} bytes at byte {}, of which {} are there", type,
                                 length, at, bytes.size() - at - kPngChunkBytes));
    }
    check(at > kPngStartBytes || type == "IHDR", ErrorKind::kBadInput,
          "[picture] {}: byte {}: expected IHDR, got {:?}", name, at + 4, type);
    if (type == "IEND") return;
    at += kPngChunkBytes + length;
  }
}

class PngReader {
 public:
  PngReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, [](png_structp, auto) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      fail(ErrorKind::kMemory, "[picture] {}: out of memory", name_);
    }
    png_set_read_fn(png_, this, take_bytes);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Picture read() {
    if (!read_header()) fail_png(name_, message_.data());
    Picture picture = blank_picture(png_get_image_width(png_, info_),
                                    png_get_image_height(png_, info_), bytes_.size(), name_);
    const bool has_palette = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE;
    const auto line = std::size_t(picture.width) * (has_palette ? 1 : 3);
    check(png_get_rowbytes(png_, info_) == line, ErrorKind::kInternal,
          "[picture] {}: expected lines of {} bytes, got {}", name_, line,
          png_get_rowbytes(png_, info_));
    std::vector<std::uint8_t> numbers(has_palette ? line * std::size_t(picture.height) : 0);
    std::uint8_t* const first = has_palette ? numbers.data() : picture.pixels.data();
    std::vector<png_bytep> lines;
    for (std::int64_t y = 0; y < picture.height; ++y)
      lines.push_back(first + std::size_t(y) * line);
    if (!read_pixels(lines.data())) fail_png(name_, message_.data());
    if (has_palette) look_up(numbers, picture);
    return picture;
  }

 private:
  static void leave(png_structp png, png_const_charp message) {
    auto* const self = static_cast<PngReader*>(png_get_error_ptr(png));
    std::strncpy(self->message_.data(), message, self->message_.size() - 1);
    png_longjmp(png, 1);
  }

  static void take_bytes(png_structp png, png_bytep out, std::size_t size) {
    auto* const self = static_cast<PngReader*>(png_get_io_ptr(png));
    if (size > self->bytes_.size() - self->at_) png_error(png, "its end");
    std::memcpy(out, self->bytes_.data() + self->at_, size);
    self->at_ += size;
  }

  // Asks for the stored values in 8 bits: of 16 bits the upper ones, without alpha, and without
  // regard to gAMA, sRGB and all other chunks that are not needed.
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_user_limits(png_, png_uint_32(kMaxPixels), png_uint_32(kMaxPixels));
    png_set_chunk_cache_max(png_, 1);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) {
      png_set_packing(png_);
    } else {
      png_set_gray_to_rgb(png_);
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_pixels(png_bytepp lines) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, lines);
    png_read_end(png_, nullptr);
    return true;
  }

  // libpng takes a colour beyond the palette for black.
  void look_up(const std::vector<std::uint8_t>& numbers, Picture& picture) const {
    png_colorp colours = nullptr;
    int count = 0;
    png_get_PLTE(png_, info_, &colours, &count);
    auto* pixel = picture.pixels.data();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      check(numbers[i] < count, ErrorKind::kBadInput,
            "[picture] {}: pixel {}: expected one of the {} colours of the palette, got {}", name_,
            i, count, numbers[i]);
      const png_color& colour = colours[numbers[i]];
      for (const png_byte value : {colour.red, colour.green, colour.blue}) *pixel++ = value;
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 128> message_{};
};

}  // namespace

Picture parse_png(std::string_view bytes, const std::string& name) {
  expect_chunks(bytes, name);
  return PngReader(bytes, name).read();
}

}  // namespace keel::io
