// Pictures in JPEG: grey, colour, four inks, progressive, damaged and too large.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
// After the headers whose types it uses.
#include <jpeglib.h>

#include "frontend/io/picture.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::refuses;

struct JpegOptions {
  J_COLOR_SPACE space = JCS_RGB;
  bool is_progressive = false, is_in_parts = false;  // in parts: a scan for each colour
};

// Blocks of 8 x 8 pixels side by side, each of one colour, in the best quality.
std::string jpeg_of(const std::vector<std::vector<std::uint8_t>>& blocks,
                    const JpegOptions& options = {}) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &bytes, &size);
  encoder.image_width = JDIMENSION(8 * blocks.size());
  encoder.image_height = 8;
  encoder.input_components = int(blocks.front().size());
  encoder.in_color_space = options.space;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 100, TRUE);
  encoder.comp_info[0].h_samp_factor = encoder.comp_info[0].v_samp_factor = 1;
  if (options.is_progressive) jpeg_simple_progression(&encoder);
  const jpeg_scan_info parts[] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (options.is_in_parts) encoder.scan_info = parts, encoder.num_scans = 3;
  jpeg_start_compress(&encoder, TRUE);
  std::vector<std::uint8_t> line;
  for (const auto& colour : blocks) {
    for (int x = 0; x < 8; ++x) line.insert(line.end(), colour.begin(), colour.end());
  }
  for (JSAMPROW row = line.data(); encoder.next_scanline < 8;) {
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

// Rounding to the luma and two differences and back changes a value by 1 or 2.
void check_colours(const std::string& jpeg, const std::vector<std::vector<std::uint8_t>>& blocks) {
  const Picture picture = parse_picture(jpeg, "a.jpg");
  REQUIRE(picture.width == 8 * std::ssize(blocks));
  REQUIRE(picture.height == 8);
  for (std::int64_t x = 0; x < picture.width; ++x) {
    for (std::int64_t c = 0; c < 3; ++c) {
      CAPTURE(x);
      CAPTURE(c);
      CHECK(std::abs(picture.at(x % 8, x, c) - blocks[std::size_t(x / 8)][std::size_t(c)]) <= 2);
    }
  }
}

TEST_CASE("jpeg: colour and grey, in one scan, in one for each colour, and progressive") {
  const std::vector<std::vector<std::uint8_t>> colours{{255, 0, 0}, {10, 200, 90}, {0, 0, 0}};
  check_colours(jpeg_of(colours), colours);
  check_colours(jpeg_of(colours, {.is_progressive = true}), colours);
  check_colours(jpeg_of(colours, {.is_in_parts = true}), colours);
  check_colours(jpeg_of({{128}, {255}, {7}}, {.space = JCS_GRAYSCALE}),
                {{128, 128, 128}, {255, 255, 255}, {7, 7, 7}});
}

// Such a file holds 255 for no ink: half of the cyan, then half of the black, then all of it.
TEST_CASE("jpeg: four inks become the light that they let through") {
  check_colours(
      jpeg_of({{127, 255, 255, 255}, {255, 0, 255, 128}, {255, 255, 255, 0}}, {.space = JCS_CMYK}),
      {{127, 255, 255}, {128, 0, 128}, {0, 0, 0}});
}

TEST_CASE("jpeg: a file that ends early, wherever, is refused, and so is a damaged one") {
  for (const bool progressive : {false, true}) {
    const std::string whole = jpeg_of({{255, 0, 0}, {0, 255, 0}}, {.is_progressive = progressive});
    for (std::size_t size = 3; size < whole.size(); ++size) {
      CAPTURE(size);
      CHECK(refuses(ErrorKind::kBadInput, "[picture] x.jpg: expected a whole JPEG file, got: ",
                    [&] { parse_picture(whole.substr(0, size), "x.jpg"); }));
    }
  }
  std::string other = jpeg_of({{1, 2, 3}});
  other[other.find("\xff\xc0") + 4] = 12;  // bits
  CHECK(refuses(ErrorKind::kBadInput, "got: Unsupported JPEG data precision 12",
                [&] { parse_picture(other, "x.jpg"); }));
}

TEST_CASE("jpeg: bytes between two segments are passed over") {
  std::string file = jpeg_of({{255, 0, 0}});
  file.insert(file.find("\xff\xdb"), "stray");
  check_colours(file, {{255, 0, 0}});
}

TEST_CASE("jpeg: a small file cannot ask for much memory or many scans") {
  std::string file = jpeg_of({{9}}, {.space = JCS_GRAYSCALE});
  file.replace(file.find("\xff\xc0") + 5, 4, "\x7f\xff\x7f\xff");
  CHECK(refuses(ErrorKind::kBadInput, "expected 1 to 67108864 pixels, got a width of 32767",
                [&] { parse_picture(file, "x.jpg"); }));
  file.replace(file.find("\xff\xc0") + 5, 4, "\x1f\x40\x1f\x40");
  CHECK(refuses(ErrorKind::kBadInput, "bytes for 8000 x 8000 pixels",
                [&] { parse_picture(file, "x.jpg"); }));
  std::string parts = jpeg_of({{1, 2, 3}}, {.is_in_parts = true});
  const std::size_t first = parts.find("\xff\xda"), next = parts.find("\xff\xda", first + 1);
  const std::string scan = parts.substr(first, next - first);
  std::string many;
  for (int i = 0; i < 50; ++i) many += scan;
  check_colours(parts.substr(0, first) + many + parts.substr(first), {{1, 2, 3}});
  CHECK(refuses(ErrorKind::kBadInput, "got: more than 64 scans", [&] {
    parse_picture(parts.substr(0, first) + many + many + parts.substr(first), "x.jpg");
  }));
}

}  // namespace
}  // namespace keel::io
