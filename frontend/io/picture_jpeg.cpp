// libjpeg-turbo decodes JPEG. Where it fails it leaves by longjmp, so that functions which call
// setjmp have nothing to destroy.
#include <cstddef>
#include <cstdio>
// After the headers whose types it uses.
#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <vector>

#include "frontend/io/picture_forms.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr long kMostJpegMemory = 1L << 30;  // a progressive file takes 6 bytes a pixel or more
constexpr int kMostScans = 64;              // programs write about ten

class JpegReader {
 public:
  JpegReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {
    decoder_.err = jpeg_std_error(&errors_);
    decoder_.client_data = this;
    errors_.error_exit = [](j_common_ptr decoder) { of(decoder).leave(); };
    errors_.emit_message = [](j_common_ptr decoder, int level) {
      if (level < 0 && is_damage(decoder->err->msg_code)) of(decoder).leave();
    };
    progress_.progress_monitor = [](j_common_ptr decoder) { of(decoder).expect_few_scans(); };
  }
  ~JpegReader() {
    if (decoder_.mem != nullptr) jpeg_destroy_decompress(&decoder_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Picture read() {
    if (!read_header()) fail_damaged();
    Picture picture =
        blank_picture(decoder_.image_width, decoder_.image_height, bytes_.size(), name_);
    is_cmyk_ = decoder_.num_components == 4;
    std::vector<std::uint8_t> line(std::size_t(picture.width) * 4);
    if (!read_pixels(picture, line.data())) fail_damaged();
    return picture;
  }

 private:
  static JpegReader& of(j_common_ptr decoder) {
    return *static_cast<JpegReader*>(decoder->client_data);
  }

  // Other warnings are of bytes between segments and of markers that nothing depends on.
  static bool is_damage(int code) {
    return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
           code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE ||
           code == JWRN_BOGUS_PROGRESSION;
  }

  [[noreturn]] void leave() {
    errors_.format_message(reinterpret_cast<j_common_ptr>(&decoder_), message_.data());
    std::longjmp(back_, 1);
  }

  void expect_few_scans() {
    if (decoder_.input_scan_number <= kMostScans) return;
    std::snprintf(message_.data(), message_.size(), "more than %d scans", kMostScans);
    std::longjmp(back_, 1);
  }

  [[noreturn]] void fail_damaged() const {
    fail(ErrorKind::kBadInput, "[picture] {}: expected a whole JPEG file, got: {}", name_,
         message_.data());
  }

  bool read_header() {
    if (setjmp(back_) != 0) return false;
    jpeg_create_decompress(&decoder_);
    decoder_.mem->max_memory_to_use = kMostJpegMemory;
    decoder_.progress = &progress_;
    jpeg_mem_src(&decoder_, reinterpret_cast<const unsigned char*>(bytes_.data()),
                 static_cast<unsigned long>(bytes_.size()));
    jpeg_read_header(&decoder_, TRUE);
    return true;
  }

  bool read_pixels(Picture& picture, std::uint8_t* line) {
    if (setjmp(back_) != 0) return false;
    decoder_.out_color_space = is_cmyk_ ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&decoder_);
    const auto width = std::size_t(decoder_.output_width);
    while (decoder_.output_scanline < decoder_.output_height) {
      std::uint8_t* const pixels = picture.pixels.data() + decoder_.output_scanline * width * 3;
      JSAMPROW row = is_cmyk_ ? line : pixels;
      jpeg_read_scanlines(&decoder_, &row, 1);
      if (is_cmyk_) put_cmyk(line, width, pixels);
    }
    jpeg_finish_decompress(&decoder_);
    return true;
  }

  // Files in four inks hold 255 for none. A colour is what its ink and black let through.
  static void put_cmyk(const std::uint8_t* inks, std::size_t width, std::uint8_t* pixels) {
    for (std::size_t x = 0; x < width; ++x) {
      const int black = inks[4 * x + 3];
      for (std::size_t c = 0; c < 3; ++c) {
        const int covered = ((255 - inks[4 * x + c]) * black + 127) / 255;
        pixels[3 * x + c] = std::uint8_t(black - covered);
      }
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  bool is_cmyk_ = false;
  jpeg_decompress_struct decoder_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
};

}  // namespace

Picture parse_jpeg(std::string_view bytes, const std::string& name) {
  return JpegReader(bytes, name).read();
}

}  // namespace keel::io
