// Regressions on vectors of sentences: optima, correlations, data, runs.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "studies/transfer_data.h"
#include "studies/transfer_scores.h"
#include "tests/studies/short_run.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

// Normal numbers, rows of class k around 2 e_k.
Labelled clouds(int rows, int width, std::int32_t classes, double apart) {
  const Tensor noise = test::random_normal({rows, width}, 3);
  Labelled data{RowMatrix(rows, width), {}, classes};
  for (int i = 0; i < rows; ++i) {
    data.labels.push_back(i % classes);
    for (int j = 0; j < width; ++j) {
      data.vectors(i, j) = noise.at(i * width + j) + (j == i % classes ? apart : 0);
    }
  }
  return data;
}

TEST_CASE("transfer: a fit is where the gradient of its loss is 0") {
  const Labelled data = clouds(60, 4, 3, 1);
  Examples examples{data.vectors, RowMatrix::Zero(60, 3)};
  for (int i = 0; i < 60; ++i) examples.target(i, data.labels[std::size_t(i)]) = 1;
  for (const double strength : {0.5, 4.0}) {
    const RowMatrix w = fit_softmax(examples, strength);
    const RowMatrix d = softmax_of(examples.x, w, 3) - examples.target;
    const RowMatrix gradient = examples.x.transpose() * d + w.topRows(4) / strength;
    CHECK(gradient.cwiseAbs().maxCoeff() < 1e-4);
    CHECK(d.colwise().sum().cwiseAbs().maxCoeff() < 1e-4);
    CHECK((fit_softmax(examples, strength, w) - w).cwiseAbs().maxCoeff() < 1e-4);
  }
}

// The solution that fit_softmax promises, found by steps down the gradient in W itself.
RowMatrix slow_fit(const Examples& examples, double strength) {
  const Eigen::Index width = examples.x.cols(), classes = examples.target.cols();
  RowMatrix w = RowMatrix::Zero(width + 1, classes);
  for (int step = 0; step < 20000; ++step) {
    const RowMatrix d = softmax_of(examples.x, w, classes) - examples.target;
    RowMatrix gradient(width + 1, classes);
    gradient.topRows(width) = examples.x.transpose() * d + w.topRows(width) / strength;
    gradient.bottomRows(1) = d.colwise().sum();
    w -= 0.01 * gradient;
  }
  return w;
}

TEST_CASE("transfer: regressions at once are each that of the rows it sees") {
  const Labelled data = clouds(60, 4, 3, 1);
  Examples all{data.vectors, RowMatrix::Zero(60, 3)};
  for (int i = 0; i < 60; ++i) all.target(i, data.labels[std::size_t(i)]) = 1;
  // Features of very unlike sizes, as the directions of sentence vectors are.
  all.x.col(1) *= 0.01;
  RowMatrix seen = RowMatrix::Ones(60, 2);
  seen.topRows(30).col(0).setZero();
  seen.bottomRows(20).col(1).setZero();
  const Penalty penalty(second_moments(all.x), 0.5);
  const RowMatrix together = fit_softmax(all, seen, penalty);
  const Examples parts[] = {{all.x.bottomRows(30), all.target.bottomRows(30)},
                            {all.x.topRows(40), all.target.topRows(40)}};
  for (int fit = 0; fit < 2; ++fit) {
    CAPTURE(fit);
    const RowMatrix expected = slow_fit(parts[fit], 0.5);
    CHECK((together.middleCols(3 * fit, 3) - expected).cwiseAbs().maxCoeff() < 1e-4);
    CHECK((fit_softmax(parts[fit], 0.5) - expected).cwiseAbs().maxCoeff() < 1e-4);
  }
}

// Weights, and a bias after them, of a logistic regression that has one vector of weights: least
// is C sum log(1 + exp(-y (w x + b))) + |w|^2 / 2 with y = 1 for class 1 and -1 for class 0.
Eigen::VectorXd plain_logistic_fit(const Labelled& data, double c) {
  const Eigen::Index width = data.vectors.cols();
  Eigen::VectorXd w = Eigen::VectorXd::Zero(width + 1);
  for (int step = 0; step < 40000; ++step) {
    Eigen::VectorXd gradient = w;
    gradient[width] = 0;
    for (Eigen::Index i = 0; i < data.vectors.rows(); ++i) {
      const Eigen::VectorXd x = data.vectors.row(i);
      const double y = data.labels[std::size_t(i)] == 1 ? 1 : -1;
      const double d = -c * y / (1 + std::exp(y * (w.head(width).dot(x) + w[width])));
      gradient.head(width) += d * x;
      gradient[width] += d;
    }
    w -= 0.02 / c * gradient;
  }
  return w;
}

TEST_CASE("transfer: vectors that are almost the same one are fitted, too" *
          doctest::test_suite("slow")) {
  // As a network has them that was hardly trained: each direction says less than the one before,
  // and how much lower a loss is stands in its last digits.
  constexpr int kRows = 9600, kWidth = 128, kFits = 9;
  const Tensor noise = test::random_normal({kRows, kWidth}, 7),
               luck = test::random_normal({kRows}, 8);
  Examples examples{RowMatrix(kRows, kWidth), RowMatrix::Zero(kRows, 2)};
  RowMatrix seen = RowMatrix::Ones(kRows, kFits);
  for (int i = 0; i < kRows; ++i) {
    double told = 0, size = 1e-3;
    for (int j = 0; j < kWidth; ++j, size *= 0.9) {
      examples.x(i, j) = std::sin(j) + size * noise.at(i * kWidth + j);
      if (j < 4) told += 0.1 * noise.at(i * kWidth + j);
    }
    examples.x.row(i).normalize();
    examples.target(i, told + luck.at(i) > 0) = 1;
    seen(i, i % kFits) = 0;
  }
  const Eigen::MatrixXd moments = second_moments(examples.x);
  RowMatrix w;
  for (const double strength : {0.5, 1.0, 2.0}) {
    CAPTURE(strength);
    w = fit_softmax(examples, seen, Penalty(moments, strength), w);
    for (int fit = 0; fit < kFits; ++fit) {
      const auto own = w.middleCols(2 * fit, 2);
      RowMatrix d = softmax_of(examples.x, own, 2) - examples.target;
      d.array().colwise() *= seen.col(fit).array();
      const RowMatrix gradient = examples.x.transpose() * d + own.topRows(kWidth) / strength;
      CHECK(gradient.cwiseAbs().maxCoeff() < 1e-3);
    }
  }
}

TEST_CASE("transfer: two classes are a logistic regression with C of 2^0 to 2^8") {
  const Labelled data = clouds(40, 2, 2, 1);
  Examples examples{data.vectors, RowMatrix::Zero(40, 2)};
  for (int i = 0; i < 40; ++i) examples.target(i, data.labels[std::size_t(i)]) = 1;
  const std::vector<double> strengths = strengths_of(2);
  REQUIRE(strengths.size() == 9);
  for (const int i : {0, 3, 8}) {
    CAPTURE(i);
    const RowMatrix both = fit_softmax(examples, strengths[std::size_t(i)]);
    const Eigen::VectorXd expected = plain_logistic_fit(data, std::ldexp(1.0, i));
    CHECK((both.col(1) - both.col(0) - expected).cwiseAbs().maxCoeff() < 1e-4);
  }
  CHECK(strengths_of(5).front() == 1);
  CHECK(strengths_of(5).back() == 256);
}

TEST_CASE("transfer: cross-validation says how far it is") {
  std::vector<double> parts;
  cross_validated_accuracy(clouds(40, 3, 2, 1), {1, 2},
                           [&](double part) { parts.push_back(part); });
  REQUIRE(parts.size() == 2 * 9);
  CHECK(parts.front() == doctest::Approx(1.0 / 18));
  CHECK(parts.back() == 1);
}

TEST_CASE("transfer: classes that are apart are told apart, and noise is not") {
  const FoldsAccuracy apart = cross_validated_accuracy(clouds(120, 5, 3, 8), {1, 4});
  CHECK(apart.all == 100);
  CHECK(apart.deviation == 0);
  const double chance = cross_validated_accuracy(clouds(120, 5, 3, 0), {1, 4}).all;
  CHECK(chance > 15);
  CHECK(chance < 55);
}

// Two folds of 3 rows each: the shares a and b are whole thirds, of which all rows have the mean,
// and their deviation is |a - b| / sqrt(2).
TEST_CASE("transfer: the deviation of the folds by hand") {
  int spread_out = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const FoldsAccuracy found = cross_validated_accuracy(clouds(6, 2, 2, 1), {seed, 2});
    const double half = found.deviation / std::sqrt(2.0);
    for (const double share : {found.all - half, found.all + half}) {
      CHECK(std::abs(3 * share / 100 - std::round(3 * share / 100)) < 1e-9);
    }
    spread_out += half > 0;
  }
  CHECK(spread_out > 0);
}

TEST_CASE("transfer: Pearson's and Spearman's correlation") {
  CHECK(pearson_correlation({1, 2, 3, 4}, {2, 4, 6, 8}) == doctest::Approx(1));
  CHECK(pearson_correlation({1, 2, 3}, {1, 2, 0}) == doctest::Approx(-0.5));
  CHECK(spearman_correlation({1, 2, 3, 4}, {1, 8, 27, 1000}) == doctest::Approx(1));
  CHECK(spearman_correlation({1, 2, 2, 3}, {1, 2, 3, 4}) == doctest::Approx(0.9486832980505138));
  test::check_refused([] { pearson_correlation({1}, {1}); }, "correlation: expected two lists");
}

TEST_CASE("transfer: relatedness follows the distance of two vectors") {
  const auto pairs = [](int rows, std::uint32_t stream) {
    RatedPairs made{RowMatrix(rows, 2), RowMatrix(rows, 2), {}};
    const Tensor drawn = test::random_normal({rows, 4}, stream);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < 2; ++j) {
        made.first(i, j) = drawn.at(4 * i + j);
        made.second(i, j) = drawn.at(4 * i + j) + 0.5 * drawn.at(4 * i + 2 + j);
      }
      const double distance = (made.first.row(i) - made.second.row(i)).cwiseAbs().sum();
      made.scores.push_back(std::max(1.0, 5 - 2 * distance));
    }
    return made;
  };
  const Relatedness found = relatedness(pairs(400, 1), pairs(100, 2), pairs(200, 3));
  CHECK(found.pearson > 0.95);
  CHECK(found.spearman > 0.95);
  CHECK(found.mse < 0.15);
}

TEST_CASE("transfer: files of sentences") {
  const test::TempDir folder;
  CHECK(read_labelled_lines(folder.path()).empty());
  CHECK(!has_sick(folder.path()));
  std::filesystem::create_directories(folder / "sentences");
  test::write_bytes(folder / "sentences" / "custrev.neg", "bad \xE9\n\nworse\n");
  test::write_bytes(folder / "sentences" / "custrev.pos", "he's good.");
  const auto sets = read_labelled_lines(folder.path());
  REQUIRE(sets.size() == 1);
  CHECK(sets[0].name == "CR");
  CHECK(sets[0].lines == std::vector<std::string>{"bad \xC3\xA9", "", "worse", "he 's good ."});
  CHECK(sets[0].labels == std::vector<std::int32_t>{0, 0, 0, 1});
}

TEST_CASE("transfer: pairs of SICK, and rows that are none") {
  const test::TempDir folder;
  std::filesystem::create_directories(folder / "sick");
  const auto write = [&](const char* name, const std::string& rows) {
    test::write_bytes(
        folder / "sick" / name,
        "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n" + rows);
  };
  const std::string rows = "1\tA dog isn't here\tNobody.\t3.5\tNEUTRAL\r\n2\tA\tB\t5\tX\n";
  write("SICK_train.txt", rows);
  write("SICK_trial.txt", rows);
  CHECK(!has_sick(folder.path()));
  write("SICK_test_annotated.txt", rows);
  REQUIRE(has_sick(folder.path()));
  const Sick sick = read_sick(folder.path());
  CHECK(sick.train.first[0] == "A dog isn 't here");
  CHECK(sick.test.second[0] == "Nobody .");
  CHECK(sick.valid.scores == std::vector<double>{3.5, 5});
  const auto refused = [&](const std::string& row, const char* part) {
    write("SICK_trial.txt", row);
    test::check_refused([&] { read_sick(folder.path()); }, "[transfer]", part,
                        ErrorKind::kBadInput);
  };
  refused("1\tA\tB\t5\n", "line 2: expected 5 columns with tabs between, got 4");
  refused("1\tA\tB\tx\tN\n", "expected a score of 1 to 5, got 'x'");
  refused("1\tA\tB\t5.5\tN\n", "got '5.5'");
  refused("1\tA\tB\t5\tN\n", "expected pairs, got 1");
}

TEST_CASE("transfer: a run counts once") {
  const auto backend = make_backend(default_backend());
  const test::TempDir temp;
  test::write_bytes(temp / "custrev.neg", "this is bad\n");
  test::write_bytes(temp / "custrev.pos", "this is good\n");
  test::train_in(temp / "run", test::small_job({"train.max_steps=1"}, "skip_thoughts"));
  Options options{*backend};
  options.data = temp.path().string();
  options.runs.assign(2, test::step_file(temp / "run", 1).string());
  test::check_refused([&] { run_small("transfer", options); },
                      "[transfer] --run: expected runs that differ in norm or seed, got");
}

}  // namespace
}  // namespace keel::study
