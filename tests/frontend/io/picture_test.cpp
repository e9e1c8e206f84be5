// Pictures: PNG of every kind, PGM and PPM, and files that are none.
#include "frontend/io/picture.h"

#include <zlib.h>

#include "frontend/io/png.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::refuses;
using Pixels = std::vector<std::uint8_t>;

std::string number_of(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += char(value >> shift & 0xff);
  return bytes;
}

std::string chunk_of(const std::string& type, std::string_view data) {
  const std::string content = type + std::string(data);
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  return number_of(std::uint32_t(data.size())) + content + number_of(std::uint32_t(sum));
}

const std::string kPngSignature = "\x89PNG\r\n\x1a\n", kPngEnd = chunk_of("IEND", "");
constexpr char kGreyPng = 0, kRgbPng = 2, kPalettePng = 3, kGreyAlphaPng = 4, kRgbAlphaPng = 6;

struct PngHeader {
  std::uint32_t width = 1, height = 1;
  char depth = 8, colour = kGreyPng, interlace = 0;
};

// All but the end mark. `rows` has the number of a filter before each row.
std::string open_png(const PngHeader& header, const std::string& rows,
                     const std::string& chunks = "") {
  uLongf size = compressBound(rows.size());
  std::string packed(size, 0);
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                   reinterpret_cast<const Bytef*>(rows.data()), rows.size()) == Z_OK);
  packed.resize(size);
  const char rest[] = {header.depth, header.colour, 0, 0, header.interlace};
  return kPngSignature +
         chunk_of("IHDR", number_of(header.width) + number_of(header.height) +
                              std::string(rest, sizeof rest)) +
         chunks + chunk_of("IDAT", packed);
}

// The bytes, the first of which is the number of the filter, which is none.
std::string row_of(std::initializer_list<int> bytes) {
  std::string row(1, 0);
  for (const int byte : bytes) row += char(byte);
  return row;
}

Pixels pixels_of(const PngHeader& header, const std::string& rows, const std::string& chunks = "") {
  return parse_picture(open_png(header, rows, chunks) + kPngEnd, "a.png").pixels;
}

TEST_CASE("picture: PNG in colour and in grey") {
  const Picture rgb = parse_picture(
      open_png({2, 2, 8, kRgbPng}, row_of({255, 0, 0, 0, 255, 0}) + row_of({1, 2, 3, 4, 5, 6})) +
          kPngEnd,
      "a.png");
  CHECK(rgb.width == 2);
  CHECK(rgb.height == 2);
  CHECK(rgb.pixels == Pixels{255, 0, 0, 0, 255, 0, 1, 2, 3, 4, 5, 6});
  CHECK(rgb.at(1, 1, 2) == 6);
  CHECK(rgb.at(0, 1, 1) == 255);
  const Picture grey = parse_picture(png_of(Pixels{0, 100, 255}, 3, 1), "grey");
  CHECK(grey.pixels == Pixels{0, 0, 0, 100, 100, 100, 255, 255, 255});
}

TEST_CASE("picture: PNG gives its stored values, whatever is said of gamma and profiles") {
  for (const std::string& chunk :
       {chunk_of("gAMA", number_of(100000)), chunk_of("gAMA", number_of(55556)),
        chunk_of("gAMA", number_of(45455)), chunk_of("sRGB", std::string(1, 0)),
        chunk_of("cHRM", std::string(32, 1)), chunk_of("sBIT", std::string(1, 3))}) {
    CAPTURE(chunk.substr(4, 4));
    CHECK(pixels_of({}, row_of({128}), chunk) == Pixels{128, 128, 128});
  }
}

TEST_CASE("picture: PNG without regard to alpha, and to colours that are called transparent") {
  CHECK(pixels_of({2, 1, 8, kRgbAlphaPng}, row_of({255, 255, 255, 128, 1, 2, 3, 0})) ==
        Pixels{255, 255, 255, 1, 2, 3});
  CHECK(pixels_of({2, 1, 8, kGreyAlphaPng}, row_of({255, 128, 9, 0})) ==
        Pixels{255, 255, 255, 9, 9, 9});
  CHECK(pixels_of({2, 1, 8, kGreyPng}, row_of({5, 9}), chunk_of("tRNS", row_of({5}))) ==
        Pixels{5, 5, 5, 9, 9, 9});
  const std::string clear = chunk_of("tRNS", row_of({5, 0, 6, 0, 7}));
  CHECK(pixels_of({1, 1, 8, kRgbPng}, row_of({5, 6, 7}), clear) == Pixels{5, 6, 7});
}

TEST_CASE("picture: PNG of 1, 2, 4 and 16 bits") {
  CHECK(pixels_of({3, 1, 1}, row_of({0b10100000})) ==
        Pixels{255, 255, 255, 0, 0, 0, 255, 255, 255});
  CHECK(pixels_of({4, 1, 2}, row_of({0b00011011})) ==
        Pixels{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255});
  CHECK(pixels_of({2, 1, 4}, row_of({0x78})) == Pixels{119, 119, 119, 136, 136, 136});
  CHECK(pixels_of({2, 1, 16}, row_of({0x12, 0xff, 0x80, 0x00})) ==
        Pixels{0x12, 0x12, 0x12, 0x80, 0x80, 0x80});
  CHECK(pixels_of({1, 1, 16, kRgbPng}, row_of({0x12, 0x7f, 0x80, 0xff, 0xfe, 0x80})) ==
        Pixels{0x12, 0x80, 0xfe});
  CHECK(pixels_of({1, 1, 16, kGreyAlphaPng}, row_of({0x80, 0xff, 0, 0})) ==
        Pixels{0x80, 0x80, 0x80});
}

TEST_CASE("picture: PNG with a palette of any depth, transparent or not, and beyond its end") {
  const std::string colours = chunk_of("PLTE",
                                       "\x01\x02\x03"
                                       "abcdef");
  const std::string clear = chunk_of("tRNS", row_of({'\x80'}));
  for (const std::string& chunks : {colours, colours + clear}) {
    CHECK(pixels_of({3, 1, 8, kPalettePng}, row_of({2, 0, 1}), chunks) ==
          Pixels{'d', 'e', 'f', 1, 2, 3, 'a', 'b', 'c'});
    CHECK(pixels_of({3, 1, 1, kPalettePng}, row_of({0b01000000}), chunks) ==
          Pixels{1, 2, 3, 'a', 'b', 'c', 1, 2, 3});
    CHECK(pixels_of({3, 1, 2, kPalettePng}, row_of({0b10000100}), chunks) ==
          Pixels{'d', 'e', 'f', 1, 2, 3, 'a', 'b', 'c'});
  }
  CHECK(refuses(ErrorKind::kBadInput,
                "a.png: pixel 1: expected one of the 3 colours of the palette, got 3", [&] {
                  pixels_of({3, 1, 8, kPalettePng}, row_of({2, 3, 1}), colours);
                }));
}

// Pass by pass: every eighth pixel, then those between.
TEST_CASE("picture: interlaced PNG, of 16 bits too") {
  CHECK(pixels_of({2, 2, 8, kGreyPng, 1}, row_of({1}) + row_of({2}) + row_of({3, 4})) ==
        Pixels{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
  CHECK(
      pixels_of({2, 2, 16, kGreyPng, 1}, row_of({1, 9}) + row_of({2, 9}) + row_of({3, 9, 4, 9})) ==
      Pixels{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
}

TEST_CASE("picture: PGM and PPM in binary form, with comments and another largest value") {
  const Picture grey = parse_picture(std::string("P5 # made\n3\n# up\n1 255\n\0d\xff", 26), "a");
  CHECK(grey.width == 3);
  CHECK(grey.height == 1);
  CHECK(grey.pixels == Pixels{0, 0, 0, 100, 100, 100, 255, 255, 255});
  CHECK(parse_picture("P6 1 2 255\nabcdef", "b").pixels == Pixels{97, 98, 99, 100, 101, 102});
  // 3 of 15 is 51 of 255; a blank may be the first pixel.
  CHECK(parse_picture("P5 3 1 15\n\x03\x08\x0f", "c").at(0, 0, 0) == 51);
  CHECK(parse_picture("P5 3 1 15\n\x03\x08\x0f", "c").at(0, 1, 0) == 136);
  CHECK(parse_picture("P5#a\n1#b\n1 255#c\nd", "e").at(0, 0, 0) == 100);
  CHECK(parse_picture("P5 2 1 255\n  ", "d").at(0, 1, 1) == 32);
}

TEST_CASE("picture: other bytes, damage and early ends are refused") {
  const auto refused = [](const std::string& bytes, const char* what) {
    CAPTURE(bytes.size());
    CHECK(refuses(ErrorKind::kBadInput, what, [&] { parse_picture(bytes, "x.png"); }));
  };
  refused("GIF89a", "[picture] x.png: expected a PNG or JPEG file, or a PGM or PPM file in binary");
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
  refused("P5 3 1 15\n\x03\x10\x0f", "value 1: expected at most 15, the largest that its header");
  refused("P5 0 2 255\n", "got a width of 0 and a height of 2");
  refused("P5 99999 99999 255\n", "expected 1 to 67108864 pixels");
  const std::string png = png_of(Pixels(40 * 40, 9), 40, 40);
  refused(png.substr(0, png.size() / 2), "expected a whole PNG file, got: ");
  std::string damaged = png;
  damaged[20] = 'z';  // in the header
  refused(damaged, "expected a whole PNG file, got: ");
}

TEST_CASE("picture: PNG without its end, and with chunks that are longer than the file") {
  const auto refused = [](const std::string& bytes, const char* what) {
    CHECK(refuses(ErrorKind::kBadInput, what, [&] { parse_picture(bytes, "x.png"); }));
  };
  const std::string open = open_png({}, row_of({128}));
  CHECK(parse_picture(open + kPngEnd, "x.png").at(0, 0, 0) == 128);
  refused(open, "expected a whole PNG file, got: no end mark (IEND) in 55 bytes");
  refused(open + kPngEnd.substr(0, 11), "got: no end mark (IEND) in 66 bytes");
  refused(kPngSignature, "got: no end mark (IEND) in 8 bytes");
  const std::string other = chunk_of("prVt", "");
  refused(open.substr(0, 8) + other + open.substr(8), "byte 12: expected IHDR, got \"prVt\"");
  for (const char* type :
       {"tEXt", "zTXt", "iTXt", "sPLT", "pCAL", "iCCP", "eXIf", "PLTE", "IDAT"}) {
    const std::string chunk = number_of(0x7fffffff) + type + std::string(20, 'a');
    refused(open.substr(0, 33) + chunk + open.substr(33) + kPngEnd,
            fmt::format("got: a chunk \"{}\" of 2147483647 bytes at byte 33", type).c_str());
  }
}

// Two million bytes of zeros in a chunk of two thousand.
TEST_CASE("picture: texts and profiles in a PNG are not unpacked") {
  const std::string zeros(2 << 20, 0);
  uLongf size = compressBound(zeros.size());
  std::string packed(size, 0);
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(zeros.data()), zeros.size());
  packed.resize(size);
  const std::string content = std::string("a\0\0", 3) + packed;
  for (const char* type : {"zTXt", "iCCP"}) {
    std::string many;
    for (int i = 0; i < 2000; ++i) many += chunk_of(type, content);
    CHECK(pixels_of({}, row_of({7}), many) == Pixels{7, 7, 7});
  }
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
  for (const char* name : {"a.png", "b/C.PNG", "x.pgm", "y.Ppm", "z.JPG", "z.jpeg"})
    CHECK(is_picture(name));
  for (const char* name : {"a.webp", "png", "a.png.gz", ""}) CHECK_FALSE(is_picture(name));
}

}  // namespace
}  // namespace keel::io
