// The built-in digits: always the same ones, balanced, on the sheet, and digits.
#include "frontend/data/digits.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::fnv;
using test::refuses;

constexpr std::int64_t kPixels = 28 * 28;

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.bytes())};
}

TEST_CASE("digits: the first hundred never change between versions") {
  const TensorDataset digits = make_digits(100, 1, "train");
  CHECK(digits.column("image").type() == TensorType{DType::kU8, {100, 28, 28}});
  CHECK(digits.column("label").type() == TensorType{DType::kI32, {100}});
  CHECK(fnv(bytes_of(digits.column("image"))) == 5589294590167949031u);
  CHECK(fnv(bytes_of(digits.column("label"))) == 9164653161072261125u);
}

TEST_CASE("digits: a row depends on seed, part and number alone") {
  const TensorDataset few = make_digits(25, 7, "train"), many = make_digits(60, 7, "train");
  for (const char* name : {"image", "label"}) {
    CHECK(bytes_of(few.column(name)) == bytes_of(many.take(25).column(name)));
  }
  const TrainTest both = builtin_digits(25, 25, 7);
  CHECK(bytes_of(both.train.column("image")) == bytes_of(few.column("image")));
  CHECK(bytes_of(both.test.column("image")) != bytes_of(few.column("image")));
  CHECK(bytes_of(both.test.column("label")) != bytes_of(few.column("label")));
  CHECK(bytes_of(make_digits(25, 8, "train").column("image")) != bytes_of(few.column("image")));
  CHECK(few.source() == "built-in digits, train, seed 7");
}

TEST_CASE("digits: every ten rows hold each label once, in varying order") {
  const TensorDataset digits = make_digits(200, 3, "test");
  const auto labels = digits.column("label").as<std::int32_t>();
  std::vector<std::vector<std::int32_t>> orders;
  for (std::size_t row = 0; row < labels.size(); row += 10) {
    orders.emplace_back(labels.begin() + std::ptrdiff_t(row),
                        labels.begin() + std::ptrdiff_t(row) + 10);
    std::vector<std::int32_t> sorted = orders.back();
    std::ranges::sort(sorted);
    CHECK(sorted == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  CHECK(std::ranges::adjacent_find(orders) == orders.end());
}

TEST_CASE("digits: bright ink in the middle, hardly any on the margin") {
  const TensorDataset digits = make_digits(1000, 1, "train");
  const auto pixels = digits.column("image").as<std::uint8_t>();
  double sum = 0, margin = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t y = i % kPixels / 28, x = i % 28;
    sum += pixels[i];
    if (x == 0 || x == 27 || y == 0 || y == 27) margin += pixels[i];
  }
  CHECK(sum / (255.0 * 1000 * kPixels) == doctest::Approx(0.126).epsilon(0.05));
  CHECK(margin / sum < 0.02);
  for (std::size_t row = 0; row < 1000; ++row) {
    REQUIRE(std::ranges::max(pixels.subspan(row * kPixels, kPixels)) > 100);
  }
}

// Classifies by the nearest mean image. Labels torn from their images would leave 90 % error, and
// digits too easy for a comparison of networks would leave almost none.
TEST_CASE("digits: labels and images belong together, and are not trivial") {
  const TrainTest set = builtin_digits(3000, 1000, 1);
  std::vector<std::array<double, kPixels>> means(10);
  const auto train = set.train.column("image").as<std::uint8_t>();
  const auto test = set.test.column("image").as<std::uint8_t>();
  for (std::size_t i = 0; i < train.size(); ++i) {
    const double label = set.train.column("label").at(static_cast<std::int64_t>(i / kPixels));
    means[static_cast<std::size_t>(label)][i % kPixels] += train[i] / 300.0;
  }
  int wrong = 0;
  for (std::size_t row = 0; row < 1000; ++row) {
    std::array<double, 10> distance{};
    for (std::size_t i = 0; i < kPixels; ++i) {
      for (std::size_t d = 0; d < 10; ++d) {
        const double difference = test[row * kPixels + i] - means[d][i];
        distance[d] += difference * difference;
      }
    }
    const auto nearest = std::ranges::min_element(distance) - distance.begin();
    wrong += nearest != set.test.column("label").at(static_cast<std::int64_t>(row));
  }
  CHECK(wrong > 200);
  CHECK(wrong < 450);
}

TEST_CASE("digits: refusals") {
  for (std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 32}) {
    CHECK(refuses(ErrorKind::kUsage, "rows: expected 1 to", [&] { make_digits(n, 1, "train"); }));
  }
}

}  // namespace
}  // namespace keel::data
