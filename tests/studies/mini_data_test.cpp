// The miniatures' data: what the distributions promise.
#include "studies/mini_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/checks.h"

namespace keel::study {
namespace {

std::vector<float> row(const data::TensorDataset& dataset, std::int64_t i) {
  const Tensor& x = dataset.column("x");
  const auto width = std::size_t(x.shape()[1]);
  const auto values = x.as<float>().subspan(std::size_t(i) * width, width);
  return {values.begin(), values.end()};
}

std::set<std::int32_t> labels(const data::TensorDataset& dataset) {
  const auto values = dataset.column("label").as<std::int32_t>();
  return {values.begin(), values.end()};
}

bool equal_bytes(const data::TensorDataset& a, const data::TensorDataset& b) {
  return std::ranges::equal(a.column("x").as<float>(), b.column("x").as<float>());
}

const data::TensorDataset& train_of(const std::unique_ptr<data::TableSplits>& splits) {
  return splits->table(task::Split::kTrain);
}

const data::TensorDataset& test_of(const std::unique_ptr<data::TableSplits>& splits) {
  return splits->table(task::Split::kTest);
}

TEST_CASE("mini data: a seed draws the same rows again, another seed others") {
  const MiniData sizes{3, 64, 32, 32, 10}, other{4, 64, 32, 32, 10};
  CHECK(equal_bytes(train_of(vectors(sizes)), train_of(vectors(sizes))));
  CHECK_FALSE(equal_bytes(train_of(vectors(sizes)), train_of(vectors(other))));
  CHECK(equal_bytes(test_of(sentences(sizes, 1)), test_of(sentences(sizes, 1))));
  CHECK_FALSE(equal_bytes(test_of(sentences(sizes, 1)), test_of(sentences(other, 1))));
}

TEST_CASE("mini data: vectors have lognormal lengths and every label") {
  const auto data = vectors({1, 4000, 100, 32, 10});
  CHECK(test_of(data).rows() == 100);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 4000; ++i) {
    double square = 0;
    for (float v : row(train_of(data), i)) square += double(v) * double(v) / 32;
    sum += std::log(square) / 2 / 4000;
    squares += std::log(square) * std::log(square) / 4 / 4000;
  }
  // log |x| / sqrt(32) is m / 2 plus log(chi2 / 32) / 2 of mean -0.016 and deviation 0.126, so its
  // deviation is 0.516; of 4000 rows the mean errs by 0.008 and the deviation by 0.006.
  CHECK(std::abs(sum + 0.016) < 0.04);
  CHECK(std::abs(std::sqrt(squares - sum * sum) - 0.516) < 0.03);
  CHECK(labels(train_of(data)).size() == 10);
  CHECK(*labels(train_of(data)).rbegin() == 9);
}

TEST_CASE(
    "mini data: sentences of one scale repeat words by Zipf's law, each pair with one label") {
  const auto data = sentences({1, 32000, 16, 32, 16}, 0);
  const auto label = train_of(data).column("label").as<std::int32_t>();
  std::map<std::vector<float>, std::pair<std::int32_t, int>> pairs;  // label and count
  int contradictions = 0;
  for (std::int64_t i = 0; i < 32000; ++i) {
    const std::int32_t own = label[std::size_t(i)];
    auto& [first, count] = pairs.try_emplace(row(train_of(data), i), own, 0).first->second;
    contradictions += first != own;
    ++count;
  }
  CHECK(contradictions == 0);
  CHECK(pairs.size() > 3000);
  CHECK(pairs.size() <= 200 * 20);
  const auto count = [](const auto& entry) { return entry.second.second; };
  const int most = count(*std::ranges::max_element(pairs, {}, count));
  // The first word's share is (1 / 2) / (1 / 2 + ... + 1 / 201) = 0.102: with a topic of 100
  // sentences it comes 164 times, and with the most frequent of 20 topics about 20 % oftener.
  CHECK(most > 140);
  CHECK(most < 280);
  CHECK(labels(train_of(data)).size() > 8);
}

TEST_CASE("mini data: a spread makes sentences of one topic differ in scale") {
  const MiniData sizes{1, 16000, 16, 32, 16};
  const auto even = sentences(sizes, 0), uneven = sentences(sizes, 1);
  const auto largest = [](const std::unique_ptr<data::TableSplits>& data) {
    return std::ranges::max(train_of(data).column("x").as<float>());
  };
  // A thousand sentences: the largest of their scales is exp of about 3.2.
  CHECK(largest(uneven) > 4 * largest(even));
  const auto label = [](const std::unique_ptr<data::TableSplits>& data) {
    return train_of(data).column("label").as<std::int32_t>();
  };
  CHECK(std::ranges::equal(label(even), label(uneven)));
}

TEST_CASE("mini data: a mixture has thirty means of its own size, three a label") {
  const auto data = mixture({1, 6000, 16, 64, 10});
  std::vector<std::vector<double>> sums(10, std::vector<double>(64, 0));
  std::vector<double> rows(10, 0);
  double squares = 0;
  const auto label = train_of(data).column("label").as<std::int32_t>();
  for (std::int64_t i = 0; i < 6000; ++i) {
    const auto c = std::size_t(label[std::size_t(i)]);
    ++rows[c];
    const std::vector<float> x = row(train_of(data), i);
    for (std::size_t f = 0; f < 64; ++f) {
      sums[c][f] += double(x[f]);
      squares += double(x[f]) * double(x[f]) / (6000 * 64);
    }
  }
  // A mean has size 0.35: x^2 is 1 + 0.1225 on average. The mean of a label's three has a third of
  // that variance, 0.0408, and of 600 rows errs by 1 / 600.
  CHECK(std::abs(squares - 1.1225) < 0.02);
  double of_labels = 0;
  for (std::size_t c = 0; c < 10; ++c) {
    CHECK(std::abs(rows[c] - 600) < 120);
    for (double sum : sums[c]) of_labels += sum * sum / (rows[c] * rows[c] * 640);
  }
  CHECK(std::abs(of_labels - 0.0425) < 0.008);
  CHECK(equal_bytes(train_of(data), train_of(mixture({1, 6000, 16, 64, 10}))));
}

TEST_CASE("mini data: half a sentence is refused") {
  test::check_refused([] { sentences({1, 24, 16, 32, 16}, 1); }, "[sentences] rows: expected");
}

}  // namespace
}  // namespace keel::study
