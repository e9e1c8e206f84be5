// CIFAR-10's files: any number of them, packed or not, broken ones, and the real ones if present.
#include "frontend/data/cifar10.h"

#include <cstdlib>

#include "frontend/data/textures.h"
#include "tests/support/input_checks.h"
#include "tests/support/small_run.h"

namespace keel::data {
namespace {

using test::cifar10_bytes;
using test::refuses;
using test::write_bytes;

TEST_CASE("cifar10: all training files in the order of their names, plain and packed") {
  const test::TempDir temp;
  const Pictures all = make_textures(12, 1, "x");
  write_bytes(temp / "data_batch_2.bin.gz", test::gzip(cifar10_bytes(all.slice(5, 4))));
  write_bytes(temp / "data_batch_1.bin", cifar10_bytes(all.slice(0, 5)));
  write_bytes(temp / "data_batch_1.bin.gz", "not looked at beside the plain file");
  write_bytes(temp / "test_batch.first3.bin", cifar10_bytes(all.slice(9, 3)));
  CHECK(find_cifar10(temp.path()) == temp.path());
  const Pictures train = load_cifar10(temp.path(), Part::kTrain);
  REQUIRE(train.rows() == 9);
  for (std::int64_t row = 0; row < 9; ++row) {
    CHECK(train.label.at(row) == all.label.at(row));
    CHECK(train.image.at(row * 3072 + 1500) == all.image.at(row * 3072 + 1500));
  }
  const Pictures test = load_cifar10(temp.path(), Part::kTest);
  REQUIRE(test.rows() == 3);
  CHECK(test.label.at(2) == all.label.at(11));
}

TEST_CASE("cifar10: the folder of the published archive is found, another is not") {
  const test::TempDir temp;
  CHECK(find_cifar10(temp.path()).empty());
  CHECK(find_cifar10(temp / "none").empty());
  std::filesystem::create_directory(temp / "cifar-10-batches-bin");
  CHECK(find_cifar10(temp.path()).empty());
  write_bytes(temp / "cifar-10-batches-bin/data_batch_1.bin", "");
  CHECK(find_cifar10(temp.path()) == temp / "cifar-10-batches-bin");
}

TEST_CASE("cifar10: the Python version is refused by its name") {
  const std::string pickle = std::string("\x80\x02}q\x01", 5) + std::string(4000, 'x');
  for (const char* place : {"", "cifar-10-batches-py/", "cifar10/"}) {
    const test::TempDir temp;
    std::filesystem::create_directories(temp / place);
    write_bytes(temp / fmt::format("{}data_batch_1", place), pickle);
    CHECK(refuses(ErrorKind::kBadInput,
                  "data_batch_1: expected CIFAR-10's binary version (cifar-10-binary.tar.gz, with "
                  "data_batch_1.bin), got its Python version (a pickle)",
                  [&] { find_cifar10(temp.path()); }));
  }
  const test::TempDir renamed;
  write_bytes(renamed / "data_batch_1.bin", pickle);
  CHECK(refuses(ErrorKind::kBadInput, "got its Python version",
                [&] { load_cifar10(renamed.path(), Part::kTrain); }));
}

TEST_CASE("cifar10: broken files are refused with file, record and byte") {
  const std::string two = cifar10_bytes(make_textures(2, 1, "x"));
  const auto refused = [](const std::string& bytes, ErrorKind kind, const char* what) {
    const test::TempDir temp;
    write_bytes(temp / "data_batch_1.bin", bytes);
    CHECK(refuses(kind, what, [&] { load_cifar10(temp.path(), Part::kTrain); }));
  };
  refused(two.substr(0, 6145), ErrorKind::kBadInput,
          "data_batch_1.bin: expected whole records of 3073 bytes, got 6145 bytes");
  refused("", ErrorKind::kBadInput, "expected content, got an empty file");
  std::string ten = two;
  ten[3073] = 10;
  refused(ten, ErrorKind::kBadInput,
          "data_batch_1.bin: record 1, byte 3073: expected a label of 0 to 9, got 10");
  refused(test::gzip(two).substr(0, 100), ErrorKind::kBadInput, "expected whole gzip data");
  const test::TempDir temp;
  write_bytes(temp / "batch.bin", two);
  CHECK(refuses(ErrorKind::kIo,
                "expected files test_batch*.bin, plain, .gz or .xz, got none (found",
                [&] { load_cifar10(temp.path(), Part::kTest); }));
}

TEST_CASE("cifar10: the real files, if they are there") {
  const char* data = std::getenv("KEEL_DATA");
  const std::filesystem::path folder = data ? find_cifar10(data) : std::filesystem::path();
  if (folder.empty()) {
    MESSAGE("skipped: KEEL_DATA is not set, or has no cifar10");
    return;
  }
  const Pictures train = load_cifar10(folder, Part::kTrain);
  CHECK(train.rows() % 10000 == 0);
  const double first[] = {6, 9, 9, 4, 1, 1, 2, 7};
  for (int i = 0; i < 8; ++i) CHECK(train.label.at(i) == first[i]);
  CHECK(cifar10_classes().at(std::size_t(train.label.at(0))) == "frog");
}

}  // namespace
}  // namespace keel::data
