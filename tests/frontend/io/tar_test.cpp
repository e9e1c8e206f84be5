// Files in tar archives, and archives that are broken.
#include "frontend/io/tar.h"

#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

std::string two_files() {
  return tar_bytes({{"folder/a.txt", "first"}, {"b", std::string_view("x\0y", 3)}});
}

TEST_CASE("tar: files come as they were put in, an empty one and one of whole blocks too") {
  const std::string block(1024, 'z');
  const std::string bytes = tar_bytes({{"a", "first"}, {"empty", ""}, {"b", block}, {"c", "last"}});
  CHECK(bytes.size() % 512 == 0);
  const std::vector<TarEntry> files = read_tar(bytes, "here");
  REQUIRE(files.size() == 4);
  CHECK(files[0].name == "a");
  CHECK(files[0].content == "first");
  CHECK(files[1].content.empty());
  CHECK(files[2].content == block);
  CHECK(files[3].content == "last");
  CHECK(read_tar(tar_bytes({}), "here").empty());
}

TEST_CASE("tar: folders are passed over, and long names have a prefix") {
  std::string bytes = two_files();
  const auto set = [&](std::size_t place, std::string_view value) {
    bytes.replace(place, value.size(), value);
    std::uint64_t sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i) {
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(bytes[i]);
    }
    bytes.replace(148, 6, fmt::format("{:06o}", sum));
  };
  set(345, "some/where");
  CHECK(read_tar(bytes, "here")[0].name == "some/where/folder/a.txt");
  set(156, "5");
  const std::vector<TarEntry> files = read_tar(bytes, "here");
  REQUIRE(files.size() == 1);
  CHECK(files[0].name == "b");
  CHECK(files[0].content == std::string_view("x\0y", 3));
}

TEST_CASE("tar: what is broken is refused with its place") {
  const auto refused = [](const std::string& bytes, const char* part) {
    CHECK(test::refuses(ErrorKind::kBadInput, part, [&] { read_tar(bytes, "[x] file"); }));
  };
  const std::string good = two_files();
  refused("", "[x] file: byte 0: expected the header of a file or the end mark, got the end");
  refused("no archive" + std::string(1000, 'x'), "byte 0: expected a header of tar");
  refused(good.substr(0, 2048), "byte 2048: expected the header of a file or the end mark");
  refused(good.substr(0, 1537), "byte 1024: expected a file that ends before the archive");
  std::string changed = good;
  changed[1030] ^= 1;
  refused(changed, "byte 1024: expected a header of tar with its checksum");
}

}  // namespace
}  // namespace keel::io
