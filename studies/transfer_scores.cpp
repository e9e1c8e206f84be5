#include "studies/transfer_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "frontend/data/permutation.h"
#include "src/core/error.h"
#include "studies/summary.h"

namespace keel::study {
namespace {

constexpr std::uint32_t kFoldStream = stream_of("transfer.folds");
constexpr int kStrengths = 9;
constexpr int kScores = 5;

using FoldRows = std::vector<std::int64_t>;

Labelled labelled_rows(const Labelled& data, std::span<const std::int64_t> rows) {
  Labelled part{RowMatrix(std::ssize(rows), data.vectors.cols()), {}, data.classes};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    part.vectors.row(Eigen::Index(i)) = data.vectors.row(rows[i]);
    part.labels.push_back(data.labels[std::size_t(rows[i])]);
  }
  return part;
}

Examples regression_examples(const Labelled& data) {
  Examples examples{data.vectors, RowMatrix::Zero(data.vectors.rows(), data.classes)};
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    examples.target(Eigen::Index(i), data.labels[i]) = 1;
  }
  return examples;
}

bool is_right(const Labelled& data, std::int64_t row, const auto& probabilities) {
  Eigen::Index best = 0;
  probabilities.maxCoeff(&best);
  return best == data.labels[std::size_t(row)];
}

std::int64_t right_ones(const Labelled& data, const RowMatrix& weights) {
  const RowMatrix p = softmax_of(data.vectors, weights, data.classes);
  std::int64_t right = 0;
  for (Eigen::Index i = 0; i < p.rows(); ++i) right += is_right(data, i, p.row(i));
  return right;
}

FoldRows order_of(const Labelled& data, std::uint64_t seed) {
  return data::permutation(data.vectors.rows(), Philox(seed, kFoldStream));
}

// Part i of the rows in this order is what i over `folds` leaves.
struct Fold {
  Labelled train, test;
};
Fold fold_of(const Labelled& data, const FoldRows& order, int fold, int folds) {
  FoldRows train, test;
  for (std::size_t i = 0; i < order.size(); ++i) {
    (int(i % std::size_t(folds)) == fold ? test : train).push_back(order[i]);
  }
  return {labelled_rows(data, train), labelled_rows(data, test)};
}

// A penalty for each strength. What they know of the rows decides how fast optima are found, and
// not where they are: those of parts of the rows take the same ones.
std::vector<Penalty> penalties_of(const RowMatrix& x, std::int32_t classes) {
  const Eigen::MatrixXd moments = second_moments(x);
  std::vector<Penalty> penalties;
  for (const double strength : strengths_of(classes)) penalties.emplace_back(moments, strength);
  return penalties;
}

// Cross-validation among some rows, all parts in one regression.
class FoldsAtOnce {
 public:
  FoldsAtOnce(const Labelled& data, std::uint64_t seed, int folds)
      : data_(data),
        examples_(regression_examples(data)),
        order_(order_of(data, seed)),
        seen_(RowMatrix::Ones(data.vectors.rows(), folds)) {
    for (std::size_t i = 0; i < order_.size(); ++i) seen_(order_[i], fold_at(i)) = 0;
  }

  // How many rows the others put into their class. Begins where the last call ended: penalties come
  // from the strong to the weak.
  std::int64_t right_ones_at(const Penalty& penalty) {
    weights_ = fit_softmax(examples_, seen_, penalty, weights_);
    const RowMatrix p = softmax_of(data_.vectors, weights_, data_.classes);
    std::int64_t right = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto own = p.row(order_[i]).segment(fold_at(i) * data_.classes, data_.classes);
      right += is_right(data_, order_[i], own);
    }
    return right;
  }

  // The weights that are fitted to all rows.
  RowMatrix weights_at(const Penalty& penalty) const {
    return fit_softmax(examples_, RowMatrix::Ones(data_.vectors.rows(), 1), penalty);
  }

 private:
  Eigen::Index fold_at(std::size_t place) const { return Eigen::Index(place) % seen_.cols(); }

  const Labelled& data_;
  Examples examples_;
  FoldRows order_;
  RowMatrix seen_, weights_;
};

// At the strength that puts most rows into their class; `done` is called after each of them.
RowMatrix best_weights(FoldsAtOnce folds, const std::vector<Penalty>& penalties,
                       const std::function<void()>& done) {
  std::size_t best = 0;
  std::int64_t most = -1;
  for (std::size_t i = 0; i < penalties.size(); ++i) {
    const std::int64_t right = folds.right_ones_at(penalties[i]);
    if (right > most) most = right, best = i;
    done();
  }
  return folds.weights_at(penalties[best]);
}

// Says which part of `steps` is done.
std::function<void()> counted_steps(int steps, const Monitor& monitor) {
  return [steps, &monitor, done = 0]() mutable { monitor(double(++done) / steps); };
}

// Relatedness --------------------------------------------------------------------------------

RowMatrix transfer_pair_features(const RatedPairs& pairs) {
  const Eigen::Index width = pairs.first.cols();
  RowMatrix x(pairs.first.rows(), 2 * width);
  x.leftCols(width) = (pairs.first - pairs.second).cwiseAbs();
  x.rightCols(width) = pairs.first.cwiseProduct(pairs.second);
  return x;
}

Examples regression_examples(const RatedPairs& pairs) {
  Examples examples{transfer_pair_features(pairs), RowMatrix::Zero(pairs.first.rows(), kScores)};
  for (std::size_t i = 0; i < pairs.scores.size(); ++i) {
    const double y = std::clamp(pairs.scores[i], 1.0, double(kScores)), low = std::floor(y);
    const auto row = Eigen::Index(i), below = Eigen::Index(low) - 1;
    examples.target(row, below) = low + 1 - y;
    if (y > low) examples.target(row, below + 1) = y - low;
  }
  return examples;
}

std::vector<double> predicted_scores(const RatedPairs& pairs, const RowMatrix& weights) {
  const RowMatrix p = softmax_of(transfer_pair_features(pairs), weights, kScores);
  std::vector<double> scores;
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    double mean = 0;
    for (int k = 0; k < kScores; ++k) mean += (k + 1) * p(i, k);
    scores.push_back(mean);
  }
  return scores;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = double(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

}  // namespace

std::vector<double> strengths_of(std::int32_t classes) {
  std::vector<double> strengths;
  for (int i = 0; i < kStrengths; ++i) strengths.push_back(std::ldexp(classes == 2 ? 0.5 : 1.0, i));
  return strengths;
}

FoldsAccuracy cross_validated_accuracy(const Labelled& data, const FoldOptions& options,
                                       const Monitor& monitor) {
  const FoldRows order = order_of(data, options.seed);
  const std::vector<Penalty> penalties = penalties_of(data.vectors, data.classes);
  const std::function<void()> done = counted_steps(options.folds * kStrengths, monitor);
  std::int64_t right = 0;
  std::vector<double> shares;
  for (int fold = 0; fold < options.folds; ++fold) {
    const Fold parts = fold_of(data, order, fold, options.folds);
    const std::int64_t own = right_ones(
        parts.test, best_weights({parts.train, options.seed, options.folds}, penalties, done));
    right += own;
    shares.push_back(100 * double(own) / double(parts.test.labels.size()));
  }
  const double centre = mean_of(shares);
  double squares = 0;
  for (const double share : shares) squares += (share - centre) * (share - centre);
  return {.all = 100 * double(right) / double(data.vectors.rows()),
          .deviation = std::sqrt(squares / double(options.folds - 1))};
}

double test_accuracy(const Labelled& train, const Labelled& test, const FoldOptions& options) {
  const RowMatrix weights = best_weights({train, options.seed, options.folds},
                                         penalties_of(train.vectors, train.classes), [] {});
  return 100 * double(right_ones(test, weights)) / double(test.vectors.rows());
}

Relatedness relatedness(const RatedPairs& train, const RatedPairs& valid, const RatedPairs& test,
                        const Monitor& monitor) {
  const Examples examples = regression_examples(train);
  const RowMatrix all = RowMatrix::Ones(examples.x.rows(), 1);
  const Eigen::MatrixXd moments = second_moments(examples.x);
  const std::function<void()> done = counted_steps(kStrengths, monitor);
  RowMatrix weights, best;
  double highest = -2;
  for (const double strength : strengths_of(kScores)) {
    weights = fit_softmax(examples, all, Penalty(moments, strength), weights);
    const double r = pearson_correlation(predicted_scores(valid, weights), valid.scores);
    if (r > highest) highest = r, best = weights;
    done();
  }
  const std::vector<double> got = predicted_scores(test, best);
  Relatedness result{pearson_correlation(got, test.scores), spearman_correlation(got, test.scores)};
  for (std::size_t i = 0; i < got.size(); ++i) {
    result.mse += (got[i] - test.scores[i]) * (got[i] - test.scores[i]) / double(got.size());
  }
  return result;
}

double pearson_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size() && a.size() >= 2, ErrorKind::kUsage,
        "correlation: expected two lists of one length, 2 or more, got {} and {}", a.size(),
        b.size());
  const auto centred = [](const std::vector<double>& x) {
    const Eigen::ArrayXd all = Eigen::Map<const Eigen::ArrayXd>(x.data(), Eigen::Index(x.size()));
    return Eigen::ArrayXd(all - all.mean());
  };
  const Eigen::ArrayXd x = centred(a), y = centred(b);
  return (x * y).sum() / std::sqrt((x * x).sum() * (y * y).sum());
}

double spearman_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  return pearson_correlation(ranks_of(a), ranks_of(b));
}

}  // namespace keel::study
