// Finding and pairing MNIST's files, with small ones made here and with the real ones if present.
#include "frontend/data/mnist.h"

#include <cstdlib>
#include <numeric>

#include "frontend/io/idx.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::gzip;
using test::refuses;

using test::TempDir;

void write_part(const std::filesystem::path& folder, const std::string& prefix, std::int64_t n) {
  std::filesystem::create_directories(folder);
  Tensor labels(DType::kI32, {n});
  std::iota(labels.as<std::int32_t>().begin(), labels.as<std::int32_t>().end(), 0);
  io::write_idx_images(folder / (prefix + "-images-idx3-ubyte"), Tensor(DType::kU8, {n, 28, 28}));
  io::write_idx_labels(folder / (prefix + "-labels-idx1-ubyte"), labels);
}

void write_set(const std::filesystem::path& folder) {
  write_part(folder, "train", 5);
  write_part(folder, "t10k", 3);
}

TrainTest load_both(const std::filesystem::path& folder) {
  return {load_mnist(folder, Part::kTrain), load_mnist(folder, Part::kTest)};
}

void check_set(const TrainTest& set) {
  CHECK(set.train.rows() == 5);
  CHECK(set.test.rows() == 3);
  CHECK(set.train.column("image").type() == TensorType{DType::kU8, {5, 28, 28}});
  CHECK(set.test.column("label").type() == TensorType{DType::kI32, {3}});
  CHECK(set.train.column("label").at(4) == 4);
}

TEST_CASE("mnist: files in the folder or in its folder mnist") {
  TempDir flat, nested;
  write_set(flat.path());
  write_set(nested / "mnist");
  check_set(load_both(flat.path()));
  check_set(load_both(nested.path()));
  CHECK(load_both(nested.path()).test.description() ==
        fmt::format("{}/mnist/t10k-images-idx3-ubyte: 3 rows; image u8(28, 28), label i32()",
                    nested.path().string()));
}

TEST_CASE("mnist: packed files beside plain ones") {
  TempDir folder;
  write_set(folder.path());
  for (const char* name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    test::write_bytes(folder / (std::string(name) + ".gz"), gzip(test::read_bytes(folder / name)));
    std::filesystem::remove(folder / name);
  }
  check_set(load_both(folder.path()));
}

TEST_CASE("mnist: a missing file is named") {
  TempDir folder;
  const auto load = [&] { load_both(folder.path()); };
  CHECK(refuses(ErrorKind::kIo, "train-images-idx3-ubyte.gz there or in its folder mnist", load));
  CHECK(refuses(ErrorKind::kIo, "/absent", [&] { load_both(folder / "absent"); }));
  for (const char* name :
       {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    write_set(folder.path());
    write_set(folder / "mnist");  // files of two sets are never mixed
    std::filesystem::remove(folder / name);
    CHECK(refuses(ErrorKind::kIo, name, load));
  }
}

TEST_CASE("mnist: parts that do not belong together") {
  TempDir folder;
  write_set(folder.path());
  const auto load = [&] { load_both(folder.path()); };
  io::write_idx_labels(folder / "t10k-labels-idx1-ubyte", Tensor(DType::kI32, {4}));
  CHECK(refuses(ErrorKind::kBadInput, "expected 3 labels, as many as images, got 4", load));
  io::write_idx_images(folder / "train-images-idx3-ubyte", Tensor(DType::kU8, {5, 28, 27}));
  CHECK(refuses(ErrorKind::kBadInput, "expected images of (28, 28), got (5, 28, 27)", load));
}

TEST_CASE("mnist: the real files" * doctest::test_suite("slow")) {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) {
    MESSAGE("skipped: KEEL_DATA names no folder with mnist/ in it");
    return;
  }
  const TrainTest set = load_both(root);
  CHECK(set.train.rows() == 60000);
  CHECK(set.test.rows() == 10000);
  const std::span<const std::int32_t> labels = set.train.column("label").as<std::int32_t>();
  CHECK(std::vector(labels.begin(), labels.begin() + 5) ==
        std::vector<std::int32_t>{5, 0, 4, 1, 9});
  std::vector<int> counts(10);
  for (std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  CHECK(counts == std::vector{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
  double sum = 0;
  for (std::uint8_t pixel : set.train.column("image").as<std::uint8_t>()) sum += pixel;
  CHECK(sum / (255.0 * 60000 * 784) == doctest::Approx(0.1306604762738429).epsilon(1e-12));
}

}  // namespace
}  // namespace keel::data
