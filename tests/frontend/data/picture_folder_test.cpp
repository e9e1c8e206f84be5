// A user's own pictures: folders of classes, splits, and what is refused.
#include "frontend/data/picture_folder.h"

#include <algorithm>
#include <numeric>

#include "frontend/io/png.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

namespace fs = std::filesystem;
using test::refuses;

// A grey picture of one value.
void write_grey(const fs::path& file, std::uint8_t value, std::int64_t side = 32) {
  fs::create_directories(file.parent_path());
  const std::vector<std::uint8_t> pixels(std::size_t(side * side), value);
  test::write_bytes(file, io::png_of(pixels, side, side));
}

// Pictures first, first + 1, ... of a class, each of its own value.
void write_class(const fs::path& folder, std::uint8_t first, int count) {
  for (int i = 0; i < count; ++i) {
    write_grey(folder / fmt::format("{:03}.png", i), std::uint8_t(first + i));
  }
}

// The values of pictures, in order.
std::vector<double> greys(const Pictures& pictures) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < pictures.rows(); ++row) {
    values.push_back(pictures.image.at(row * 3072));
  }
  return values;
}

TEST_CASE("picture folder: classes are folders, in the order of their names") {
  const test::TempDir temp;
  write_class(temp / "dog", 100, 12);
  write_class(temp / "cat", 1, 8);
  write_grey(temp / "cat/large.PNG", 50, 64);  // before the digits' names? capital letters are
  test::write_bytes(temp / "cat/notes.txt", "no picture");
  test::write_bytes(temp / "README", "no class");
  fs::create_directory(temp / "empty");
  fs::create_directory(temp / "dog/folder.png");
  write_class(temp / ".hidden", 1, 1);
  const PictureFolder all = read_picture_folder(temp.path(), {.seed = 1});
  CHECK(all.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(all.skipped.note() == "; left out: .txt: 1, folders: 1, hidden: 1, without an ending: 1");
  CHECK(all.valid.rows() == 2);
  const Pictures test = all.test();
  CHECK(test.rows() == 2);
  CHECK(all.train.rows() == 17);
  CHECK(all.valid_source ==
        fmt::format("a tenth of {}, drawn by data.seed=1", temp.path().string()));
  std::vector<double> met = greys(all.train), valid = greys(all.valid), tested = greys(test);
  met.insert(met.end(), valid.begin(), valid.end());
  met.insert(met.end(), tested.begin(), tested.end());
  std::ranges::sort(met);
  CHECK(std::ranges::adjacent_find(met) == met.end());
  for (const Pictures* part : {&all.train, &all.valid}) {
    const std::vector<double> values = greys(*part);
    for (std::size_t row = 0; row < values.size(); ++row) {
      CHECK(part->label.at(std::int64_t(row)) == (values[row] >= 100 ? 1 : 0));
    }
  }
  CHECK(greys(read_picture_folder(temp.path(), {.seed = 1}).valid) == valid);
  CHECK(greys(read_picture_folder(temp.path(), {.seed = 2}).valid) != valid);
}

TEST_CASE("picture folder: splits of their own") {
  const test::TempDir temp;
  write_class(temp / "train/a", 1, 3);
  write_class(temp / "train/b", 11, 2);
  write_class(temp / "val/b", 21, 2);
  write_class(temp / "test/a", 31, 1);
  const PictureFolder all = read_picture_folder(temp.path(), {});
  CHECK(greys(all.train) == std::vector<double>{1, 2, 3, 11, 12});
  CHECK(greys(all.valid) == std::vector<double>{21, 22});
  CHECK(all.valid.label.at(0) == 1);
  CHECK(greys(all.test()) == std::vector<double>{31});
  CHECK(all.test_source == (temp / "test").string());
  // The test folder is read when it is asked for.
  write_class(temp / "test/c", 1, 1);
  const PictureFolder again = read_picture_folder(temp.path(), {});
  CHECK(refuses(ErrorKind::kBadInput, "expected folders of the classes a, b, got c",
                [&] { again.test(); }));
}

TEST_CASE("picture folder: a class may be called train, and validation is a split") {
  const test::TempDir vehicles;
  write_class(vehicles / "bus", 1, 10);
  write_class(vehicles / "train", 101, 10);
  CHECK(read_picture_folder(vehicles.path(), {}).classes ==
        std::vector<std::string>{"bus", "train"});
  const test::TempDir parts;
  write_class(parts / "train/a", 1, 5);
  write_class(parts / "train/b", 11, 5);
  write_class(parts / "validation/b", 21, 2);
  const PictureFolder all = read_picture_folder(parts.path(), {});
  CHECK(greys(all.valid) == std::vector<double>{21, 22});
  CHECK(all.valid_source == (parts / "validation").string());
}

TEST_CASE("picture folder: known classes keep their numbers") {
  const test::TempDir temp;
  write_class(temp / "b", 1, 12);
  const PictureFolder all = read_picture_folder(temp.path(), {.classes = {"a", "b"}});
  CHECK(all.classes == std::vector<std::string>{"a", "b"});
  CHECK(all.train.label.at(0) == 1);
  CHECK(refuses(ErrorKind::kBadInput, "expected folders of the classes a, c, got b", [&] {
    read_picture_folder(temp.path(), {.classes = {"a", "c"}});
  }));
}

TEST_CASE("picture folder: refusals") {
  const auto refused = [](const test::TempDir& temp, ErrorKind kind, const char* what) {
    CHECK(refuses(kind, what, [&] { read_picture_folder(temp.path(), {}); }));
  };
  const test::TempDir none;
  refused(none, ErrorKind::kIo,
          "expected folders of pictures, CLASS/*.png, .jpg, .jpeg, .pgm, .ppm, got none");
  const test::TempDir flat;
  write_grey(flat / "a.png", 1);
  refused(flat, ErrorKind::kIo,
          "got none (found a.png: a class has a folder, and files of CIFAR-10");
  const test::TempDir one;
  write_class(one / "a", 1, 12);
  refused(one, ErrorKind::kBadInput, "expected two classes or more, got only a");
  const test::TempDir few;
  write_class(few / "a", 1, 4);
  write_class(few / "b", 1, 5);
  refused(few, ErrorKind::kBadInput,
          "expected at least 10 pictures, of which some are held out, got 9");
  write_class(few / "c", 1, 4);
  test::write_bytes(few / "c/broken.png", "no picture");
  refused(few, ErrorKind::kBadInput, "c/broken.png: expected a PNG or JPEG file");
  const test::TempDir named;
  write_class(named / "a", 1, 12);
  write_class(named / "b\nc", 1, 12);
  refused(named, ErrorKind::kBadInput, "expected names of classes that are lines of UTF-8");
}

}  // namespace
}  // namespace keel::data
