// Digits of black and white pixels, from each kind of source.
#include <doctest/doctest.h>

#include "frontend/data/mnist.h"
#include "models/draw/data.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::write_bytes;

// An image whose pixels are 1 from `first` on.
std::string amat_line(int first) {
  std::string line;
  for (int i = 0; i < 784; ++i) line += fmt::format("{}{}", i > 0 ? " " : "", i >= first ? 1 : 0);
  return line + "\n";
}

std::unique_ptr<task::Stream> digits(const std::string& source, Binarize binarize,
                                     task::Split split, std::int64_t train_rows = 0) {
  const task::DataRequest request{.source = source, .train_rows = train_rows};
  return load_binary_digits(request, binarize)->stream(split, {.batch = 1000});
}

double ink_of(task::Stream& stream) {
  double ink = 0;
  for (const float pixel : stream.at(0, 0).values[0].as<float>()) {
    CHECK((pixel == 0 || pixel == 1));
    ink += pixel;
  }
  return ink;
}

TEST_CASE("binary digits: files with an image a line") {
  const test::TempDir temp;
  std::filesystem::create_directory(temp.path() / "binarized_mnist");
  const auto write = [&](const char* part, const std::string& text) {
    write_bytes(temp.path() / "binarized_mnist" / fmt::format("binarized_mnist_{}.amat", part),
                text);
  };
  write("train", amat_line(0) + amat_line(780) + amat_line(784));
  write("valid", amat_line(783));
  const auto train = digits(temp.path().string(), Binarize::kFixed, task::Split::kTrain);
  CHECK(train->rows() == 3);
  CHECK(ink_of(*train) == 784 + 4);
  const task::Batch& batch = train->at(0, 0);
  CHECK(batch.values[0].as<float>()[784 + 779] == 0);
  CHECK(batch.values[0].as<float>()[784 + 780] == 1);
  CHECK(batch.values[1].as<std::int32_t>()[2] == 2);
  CHECK(ink_of(*digits(temp.path().string(), Binarize::kFixed, task::Split::kValid)) == 1);
  CHECK(digits(temp.path().string(), Binarize::kFixed, task::Split::kTrain, 2)->rows() == 2);
  // The test file is not looked for before it is wanted.
  test::check_refused([&] { digits(temp.path().string(), Binarize::kFixed, task::Split::kTest); },
                      "[draw] ", "expected binarized_mnist_test.amat", ErrorKind::kIo);
}

TEST_CASE("binary digits: test images come as often as they are asked for, and others once") {
  const test::TempDir temp;
  for (const char* part : {"train", "valid", "test"}) {
    write_bytes(temp.path() / fmt::format("binarized_mnist_{}.amat", part),
                amat_line(700) + amat_line(783));
  }
  const auto splits = load_binary_digits({.source = temp.path().string()}, Binarize::kFixed, 3);
  const auto rows_of = [&](task::Split split) {
    return splits->stream(split, {.batch = 10})->rows();
  };
  CHECK(rows_of(task::Split::kTrain) == 2);
  CHECK(rows_of(task::Split::kValid) == 2);
  const auto tests = splits->stream(task::Split::kTest, {.batch = 10});
  REQUIRE(tests->rows() == 6);
  const task::Batch& batch = tests->at(0, 0);
  for (std::size_t row = 0; row < 6; ++row) {
    CAPTURE(row);
    CHECK(batch.values[0].as<float>()[row * 784 + 700] == (row % 2 == 0 ? 1 : 0));
    CHECK(batch.values[0].as<float>()[row * 784 + 783] == 1);
    CHECK(batch.values[1].as<std::int32_t>()[row] == std::int32_t(row));
  }
}

TEST_CASE("binary digits: a damaged file is refused with its line") {
  const test::TempDir temp;
  const std::string file = (temp.path() / "binarized_mnist_train.amat").string();
  const auto refused = [&](const std::string& text, const std::string& what) {
    write_bytes(file, text);
    test::check_refused(
        [&] { digits(temp.path().string(), Binarize::kFixed, task::Split::kTrain); },
        fmt::format("[draw] {}: {}", file, what), "", ErrorKind::kBadInput);
  };
  refused(amat_line(5) + amat_line(5).substr(2), "line 2: expected 784 digits, got 783");
  refused(amat_line(5) + "\n", "line 2: expected 784 digits, got 0");
  refused("0 " + amat_line(5), "line 1: expected 784 digits, got 785");
  refused("2" + amat_line(5).substr(1), "line 1: digit 1: expected 0 or 1, got '2'");
  refused("0.0" + amat_line(5).substr(1), "line 1: digit 1: expected 0 or 1, got '0.0'");
  refused("x" + amat_line(5).substr(1), "line 1: digit 1: expected 0 or 1, got 'x'");
}

TEST_CASE("binary digits: MNIST at a threshold, and drawn once") {
  const std::string folder = test::small_digits().string();
  const auto grey = [&](Binarize binarize) {
    return digits(folder, binarize, task::Split::kTrain);
  };
  const auto threshold = grey(Binarize::kThreshold), sampled = grey(Binarize::kSampled);
  CHECK(threshold->rows() == 275);
  CHECK(threshold->source().ends_with(", thresholded"));
  CHECK(sampled->source().ends_with(", sampled"));
  const double ink = ink_of(*threshold), drawn = ink_of(*sampled);
  CHECK(ink != drawn);
  CHECK(drawn == doctest::Approx(ink).epsilon(0.15));
  CHECK(ink_of(*grey(Binarize::kSampled)) == drawn);
}

TEST_CASE("binary digits: every pixel of every image is drawn by itself") {
  const std::string folder = test::small_digits().string();
  const auto drawn = digits(folder, Binarize::kSampled, task::Split::kTest);
  const data::TensorDataset grey = data::load_mnist(folder, data::Part::kTest);
  const auto greys = grey.column("image").as<std::uint8_t>();
  const auto pixels = drawn->at(0, 0).values[0].as<float>();
  // The darker pixel of two images can be drawn without the lighter one only if each image has its
  // own random numbers.
  int darker_alone = 0;
  for (std::size_t i = 784; i < 60 * 784; ++i) {
    darker_alone += greys[i] < greys[i - 784] && pixels[i] > pixels[i - 784];
  }
  CHECK(darker_alone > 0);
}

TEST_CASE("binary digits: built-in digits have no fixed form") {
  test::check_refused([] { digits("builtin", Binarize::kFixed, task::Split::kTrain); },
                      "model.binarize: expected threshold or sampled for built-in digits");
}

}  // namespace
}  // namespace keel::models
