// Which classes are taken for which, on numbers by hand.
#include "frontend/task/confusion.h"

#include <cmath>

#include "tests/support/input_checks.h"

namespace keel::task {
namespace {

// Class a: 4 rows, 3 right, 1 taken for b. Class b: 2 rows, both taken for a. Class c: never.
Confusion small_confusion() {
  Confusion confusion({"a", "b", "c"});
  for (int i = 0; i < 3; ++i) confusion.add(0, 0);
  confusion.add(0, 1);
  confusion.add(1, 0);
  confusion.add(1, 0);
  return confusion;
}

TEST_CASE("confusion: counts, precision, recall and F1") {
  const Confusion confusion = small_confusion();
  CHECK(confusion.count(0, 0) == 3);
  CHECK(confusion.count(0, 1) == 1);
  CHECK(confusion.count(1, 0) == 2);
  CHECK(confusion.count(1, 1) == 0);
  CHECK(confusion.figures(0).precision() == 3.0 / 5);
  CHECK(confusion.figures(0).recall() == 3.0 / 4);
  CHECK(confusion.figures(0).f1() == 2 * 3.0 / 9);
  CHECK(confusion.figures(1).rows == 2);
  CHECK(confusion.figures(1).precision() == 0);
  CHECK(confusion.figures(1).recall() == 0);
  CHECK(std::isnan(confusion.figures(2).precision()));
  CHECK(std::isnan(confusion.figures(2).recall()));
  CHECK(confusion.macro_f1() == (2 * 3.0 / 9 + 0) / 2);
  CHECK(std::isnan(Confusion({"a"}).macro_f1()));
}

TEST_CASE("confusion: the pairs that are confused most often") {
  Confusion confusion = small_confusion();
  confusion.add(2, 1);
  const std::vector<ConfusedPair> pairs = confusion.most_confused(2),
                                  all = confusion.most_confused(9);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].truth == 1);
  CHECK(pairs[0].predicted == 0);
  CHECK(pairs[0].rows == 2);
  CHECK(pairs[1].truth == 0);
  REQUIRE(all.size() == 3);
  CHECK(all[2].truth == 2);
}

TEST_CASE("confusion: a class that there is not") {
  Confusion confusion({"a", "b"});
  for (const auto& [truth, predicted] : {std::pair{-1, 0}, {2, 0}, {0, 2}, {0, -2}, {-1, -1}}) {
    CHECK(test::refuses(ErrorKind::kUsage, "expected a class of 0 to 1",
                        [&] { confusion.add(truth, predicted); }));
  }
}

TEST_CASE("classified: the first of the largest logits and its probability") {
  const Tensor logits = Tensor::of<float>({2, 3}, {1, 3, 3, 1000, -1000, 0});
  const Classified first = classified(logits, 0), second = classified(logits, 1);
  CHECK(first.predicted == 1);
  CHECK(first.probability == doctest::Approx(1 / (2 + std::exp(-2.0))).epsilon(1e-15));
  CHECK(second.predicted == 0);
  CHECK(second.probability == 1);
  const std::vector<double> all = log_probabilities(logits, 0);
  CHECK(all[0] == doctest::Approx(-2 - std::log(2 + std::exp(-2.0))).epsilon(1e-15));
  // Logits whose difference a float64 does not see beside the logarithm of their sum.
  CHECK(classified(Tensor::of<float>({1, 2}, {-1e-38f, 0}), 0).predicted == 1);
}

TEST_CASE("classified: a row with a NaN has no answer, and counts as wrong for every class") {
  const Tensor logits = Tensor::of<float>({3, 2}, {NAN, 1, 1, NAN, NAN, NAN});
  Confusion confusion({"a", "b"});
  for (std::int64_t row = 0; row < 3; ++row) {
    const Classified found = classified(logits, row);
    CHECK(found.predicted == -1);
    CHECK(std::isnan(found.probability));
    for (const int truth : {0, 1}) confusion.add(truth, found.predicted);
  }
  for (const int label : {0, 1}) {
    CHECK(confusion.figures(label).rows == 3);
    CHECK(confusion.figures(label).right == 0);
    CHECK(confusion.figures(label).predicted == 0);
  }
  CHECK(confusion.most_confused(9).empty());
}

TEST_CASE("confusion scorer: padding does not count, rows come in any order") {
  ConfusionScorer scorer({"x", "y"}, 1);
  const auto take = [&](std::vector<std::int64_t> rows, std::vector<std::int32_t> labels,
                        std::vector<float> logits) {
    const auto n = std::int64_t(rows.size());
    Batch batch{.sizes = {n}, .values = {}, .rows = rows};
    batch.values.push_back(Tensor(DType::kF32, {n}));
    batch.values.push_back(Tensor::of<std::int32_t>({n}, labels));
    std::map<std::string, Tensor> predictions;
    predictions.emplace("logits", Tensor::of<float>({n, 2}, logits));
    scorer.take(batch, predictions);
  };
  take({2, 0, -1}, {0, 1, -1}, {0, 1, 0, 1, 5, 0});
  take({1}, {0}, {1, 0});
  REQUIRE(scorer.rows().size() == 3);
  CHECK(scorer.rows()[0].truth == 1);
  CHECK(scorer.rows()[0].predicted == 1);
  CHECK(scorer.rows()[1].predicted == 0);
  CHECK(scorer.rows()[2].truth == 0);
  CHECK(scorer.rows()[2].predicted == 1);
  CHECK(scorer.confusion().count(0, 1) == 1);
  CHECK(scorer.confusion().count(0, 0) == 1);
  CHECK(scorer.confusion().count(1, 1) == 1);
}

}  // namespace
}  // namespace keel::task
