// Pictures: PNG of every kind, PGM and PPM, and files that are none.
#include "frontend/io/picture.h"

#include <png.h>

#include "frontend/io/png.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::refuses;
using Pixels = std::vector<std::uint8_t>;

// A PNG of 8 or, with a linear format, 16 bits a colour, as libpng writes it. With a format that
// has a palette (red, green, blue of each entry), pixels are numbers of its entries.
std::string png_bytes(std::uint32_t format, std::uint32_t width, std::uint32_t height,
                      const void* pixels, const Pixels& palette = {}) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  image.colormap_entries = std::uint32_t(palette.size() / 3);
  const void* const colours = palette.empty() ? nullptr : palette.data();
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, colours) != 0);
  std::string bytes(size, 0);
  REQUIRE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, colours) != 0);
  return bytes;
}

TEST_CASE("picture: PNG in colour, in grey, and with transparent pixels") {
  const Pixels colours{255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Picture rgb = parse_picture(png_bytes(PNG_FORMAT_RGB, 2, 3, colours.data()), "a.png");
  CHECK(rgb.width == 2);
  CHECK(rgb.height == 3);
  CHECK(rgb.pixels == colours);
  CHECK(rgb.at(1, 0, 2) == 255);
  CHECK(rgb.at(2, 1, 0) == 7);
  const Picture grey = parse_picture(png_of(Pixels{0, 100, 255}, 3, 1), "grey");
  CHECK(grey.pixels == Pixels{0, 0, 0, 100, 100, 100, 255, 255, 255});
  const Pixels clear{200, 100, 50, 255, 200, 100, 50, 0};
  const Picture over = parse_picture(png_bytes(PNG_FORMAT_RGBA, 2, 1, clear.data()), "clear");
  CHECK(over.pixels == Pixels{200, 100, 50, 0, 0, 0});
}

TEST_CASE("picture: PNG with a palette, and of 16 linear bits a colour") {
  const Pixels palette{10, 20, 30, 200, 100, 50, 0, 255, 0}, numbers{2, 0, 1, 1};
  const std::string bytes = png_bytes(PNG_FORMAT_RGB_COLORMAP, 2, 2, numbers.data(), palette);
  CHECK(parse_picture(bytes, "palette").pixels ==
        Pixels{0, 255, 0, 10, 20, 30, 200, 100, 50, 200, 100, 50});
  // libpng takes a picture's bytes for the power 1 / 2.2: 255 (14028 / 65535)^(1 / 2.2) = 126.5.
  const std::vector<std::uint16_t> linear{0, 14028, 65535};
  const Picture grey = parse_picture(png_bytes(PNG_FORMAT_LINEAR_Y, 3, 1, linear.data()), "linear");
  CHECK(grey.at(0, 0, 0) == 0);
  CHECK(grey.at(0, 1, 0) >= 126);
  CHECK(grey.at(0, 1, 0) <= 127);
  CHECK(grey.at(0, 2, 0) == 255);
}

TEST_CASE("picture: PGM and PPM in binary form, with comments and another largest value") {
  const Picture grey = parse_picture(std::string("P5 # made\n3\n# up\n1 255\n\0d\xff", 26), "a");
  CHECK(grey.width == 3);
  CHECK(grey.height == 1);
  CHECK(grey.pixels == Pixels{0, 0, 0, 100, 100, 100, 255, 255, 255});
  CHECK(parse_picture("P6 1 2 255\nabcdef", "b").pixels == Pixels{97, 98, 99, 100, 101, 102});
  // 3 of 15 is 51 of 255; a blank may be the first pixel; more than the largest is the largest.
  CHECK(parse_picture("P5 3 1 15\n\x03 \x0f", "c").at(0, 0, 0) == 51);
  CHECK(parse_picture("P5 3 1 15\n\x03 \x0f", "c").at(0, 1, 0) == 255);
  CHECK(parse_picture("P5#a\n1#b\n1 255#c\nd", "e").at(0, 0, 0) == 100);
  CHECK(parse_picture("P5 2 1 255\n  ", "d").at(0, 1, 1) == 32);
}

TEST_CASE("picture: other bytes, damage and early ends are refused") {
  const auto refused = [](const std::string& bytes, const char* what) {
    CAPTURE(bytes.size());
    CHECK(refuses(ErrorKind::kBadInput, what, [&] { parse_picture(bytes, "x.png"); }));
  };
  refused("GIF89a", "[picture] x.png: expected a PNG file, or a PGM or PPM file in binary form");
  refused("", "got other bytes");
  refused("P2 1 1 255 7", "got other bytes");
  refused("P5", "byte 2: expected the width");
  refused("P5 3 x", "byte 5: expected the height");
  refused("P5 3 3 ", "byte 7: expected the largest value");
  refused("P55 3 3 255\n", "byte 2: expected a blank after P5 or P6");
  refused("P5 3x3 255\n", "byte 4: expected a blank after the width");
  refused("P5 3 3 255abcdefghi", "byte 10: expected a blank after the largest value");
  refused("P5 0000000003 3 255\n", "byte 12: expected at most 9 digits for the width");
  refused("P5 2 2 255\nabc", "expected 4 bytes after the header, got 3");
  refused("P6 2 2 255", "expected 12 bytes after the header, got 0");
  refused("P5 2 2 65535\nabcdefgh", "expected a largest value of 1 to 255, got 65535");
  refused("P5 0 2 255\n", "got a width of 0 and a height of 2");
  refused("P5 99999 99999 255\n", "expected 1 to 67108864 pixels");
  const std::string png = png_of(Pixels(40 * 40, 9), 40, 40);
  refused(png.substr(0, png.size() / 2), "expected a whole PNG file, got: ");
  std::string damaged = png;
  damaged[20] = 'z';  // in the header
  refused(damaged, "expected a whole PNG file, got: ");
}

// Releases of libpng before 1.6.51 write beyond the pixels of such a file.
TEST_CASE("picture: an interlaced PNG of 16 bits is refused, and a chunk before its header") {
  const std::string png(
      "\211PNG\015\012\032\012\000\000\000\015IHDR"
      "\000\000\000\001\000\000\000\001\020\000\000\000\001\035\351w"
      "\200\000\000\000\013IDATx\234ch`\000\000"
      "\001\003\000\201>L\305\223\000\000\000\000IEND"
      "\256B`\202",
      68);
  const auto refused = [](const std::string& bytes, const char* what) {
    CHECK(refuses(ErrorKind::kBadInput, what, [&] { parse_picture(bytes, "x.png"); }));
  };
  refused(png, "expected a PNG file of 8 bits, or one that is not interlaced, got");
  const std::string other("\0\0\0\0prVt\0\0\0\0", 12);
  refused(png.substr(0, 8) + other + png.substr(8), "byte 12: expected IHDR, got \"prVt\"");
  refused(png.substr(0, 8), "expected a whole PNG file, got 8 bytes");
}

TEST_CASE("picture: a small PNG file cannot ask for much memory") {
  std::string png = png_of(Pixels(4, 9), 2, 2);
  // 8,000 x 8,000 pixels in the header, with its checksum.
  const std::string size("\0\0\x1f\x40\0\0\x1f\x40", 8);
  png.replace(16, 8, size);
  const auto* header = reinterpret_cast<const Bytef*>(png.data() + 12);
  const auto sum = std::uint32_t(crc32_z(0, header, 17));
  for (int i = 0; i < 4; ++i) png[std::size_t(29 + i)] = char(sum >> (24 - 8 * i));
  CHECK(refuses(ErrorKind::kBadInput, "bytes for 8000 x 8000 pixels",
                [&] { parse_picture(png, "bomb.png"); }));
}

TEST_CASE("picture: files, and which names are those of pictures") {
  const test::TempDir temp;
  test::write_bytes(temp / "a.ppm", "P6 1 1 255\nabc");
  CHECK(read_picture(temp / "a.ppm").pixels == Pixels{97, 98, 99});
  CHECK(refuses(ErrorKind::kIo, "none.png", [&] { read_picture(temp / "none.png"); }));
  for (const char* name : {"a.png", "b/C.PNG", "x.pgm", "y.Ppm"}) CHECK(is_picture(name));
  for (const char* name : {"a.jpg", "png", "a.png.gz", ""}) CHECK_FALSE(is_picture(name));
}

}  // namespace
}  // namespace keel::io
