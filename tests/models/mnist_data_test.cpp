// Splits of the digits: sizes, what is held out, and folders that are too small.
#include "models/mnist_data.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "frontend/data/digits.h"
#include "frontend/data/mnist.h"
#include "frontend/io/idx.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

std::vector<std::int32_t> labels(const data::TensorDataset& part) {
  const auto values = part.column("label").as<std::int32_t>();
  return {values.begin(), values.end()};
}

struct Parts {
  std::unique_ptr<data::TableSplits> splits;
  const data::TensorDataset &train, &valid, &test;

  Parts(const task::DataRequest& request, Validation validation)
      : splits(load_digits(request, validation, {})),
        train(splits->table(task::Split::kTrain)),
        valid(splits->table(task::Split::kValid)),
        test(splits->table(task::Split::kTest)) {}
};

TEST_CASE("digits: the test files are not opened before a test stream is asked for") {
  const test::TempDir temp;
  const data::TensorDataset digits = data::make_digits(24, 1, "train");
  io::write_idx_images(temp / "train-images-idx3-ubyte", digits.column("image"));
  io::write_idx_labels(temp / "train-labels-idx1-ubyte", digits.column("label"));
  const auto splits = load_digits({.source = temp.path()}, Validation::kLast, {});
  CHECK(splits->stream(task::Split::kTrain, {})->rows() == 22);
  CHECK(splits->stream(task::Split::kValid, {})->rows() == 2);
  test::check_refused([&] { splits->stream(task::Split::kTest, {}); }, "[mnist]", "t10k",
                      ErrorKind::kIo);
}

TEST_CASE("digits: the validation rows are the first or the last, and nothing is lost") {
  const std::string source = test::small_digits();
  const std::vector<std::int32_t> all = labels(data::load_mnist(source, data::Part::kTrain));
  const Parts first({.source = source}, Validation::kFirst),
      last({.source = source}, Validation::kLast);
  const auto joined = [](const data::TensorDataset& a, const data::TensorDataset& b) {
    std::vector<std::int32_t> values = labels(a);
    const std::vector<std::int32_t> more = labels(b);
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  CHECK(first.valid.rows() == 25);  // a twelfth of 300
  CHECK(last.valid.rows() == 25);
  CHECK(joined(first.valid, first.train) == all);
  CHECK(joined(last.train, last.valid) == all);
  CHECK(first.test.rows() == 60);
}

TEST_CASE("digits: train_rows takes the first of those not held out") {
  const std::string source = test::small_digits();
  for (Validation validation : {Validation::kFirst, Validation::kLast}) {
    const Parts whole({.source = source}, validation),
        part({.source = source, .train_rows = 50}, validation),
        more({.source = source, .train_rows = 5000}, validation);
    CHECK(labels(part.train) == labels(whole.train.take(50)));
    CHECK(labels(part.valid) == labels(whole.valid));
    CHECK(more.train.rows() == whole.train.rows());
  }
}

TEST_CASE("digits: the built-in ones" * doctest::test_suite("slow")) {
  const Parts splits({.seed = 3}, Validation::kLast);
  CHECK(splits.train.rows() == 11000);
  CHECK(splits.valid.rows() == 1000);
  CHECK(splits.test.rows() == 2000);
}

TEST_CASE("digits: too few images to hold one out are refused") {
  const test::TempDir temp;
  const data::TensorDataset few = data::make_digits(11, 1, "train");
  for (const char* prefix : {"train", "t10k"}) {
    io::write_idx_images(temp / (std::string(prefix) + "-images-idx3-ubyte"), few.column("image"));
    io::write_idx_labels(temp / (std::string(prefix) + "-labels-idx1-ubyte"), few.column("label"));
  }
  test::check_refused([&] { Parts({.source = temp.path()}, Validation::kLast); }, "",
                      "expected at least 12 training images, got 11", ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::models
