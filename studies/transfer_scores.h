// Scores of vectors of sentences on tasks that they were not trained for, as in Kiros et al. 2015,
// section 3, and Ba et al. 2016, table 3.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "studies/regression.h"

namespace keel::study {

// Rows of vectors with the class of each.
struct Labelled {
  RowMatrix vectors;
  std::vector<std::int32_t> labels;  // 0 to classes - 1
  std::int32_t classes = 2;
};

// The strengths (regression.h) to choose from: those of a logistic regression with C of 2^0 to 2^8.
// With two classes each class has a vector of weights, and both share the penalty of the one vector
// of a logistic regression, so C is twice the strength there.
std::vector<double> strengths_of(std::int32_t classes);

// An order drawn by the seed divides the rows into parts.
struct FoldOptions {
  std::uint64_t seed = 0;
  int folds = 10;
};

// Receives from time to time the part, in (0, 1], that is done.
using Monitor = std::function<void(double part)>;
inline void nobody_watches(double) {}

struct FoldsAccuracy {
  double all = 0;        // the share of all rows, in per cent
  double deviation = 0;  // of the shares of the folds, with folds - 1
};
// The rows that a softmax regression puts into their class, by nested cross-validation: each of
// `folds` parts is classified by a regression on the others, whose strength is chosen by
// cross-validation among these.
FoldsAccuracy cross_validated_accuracy(const Labelled& data, const FoldOptions& options,
                                       const Monitor& monitor = nobody_watches);
// By a regression on `train`, whose strength is chosen by cross-validation there.
double test_accuracy(const Labelled& train, const Labelled& test, const FoldOptions& options);

// Pairs of sentences and how related people judge them to be, 1 to 5.
struct RatedPairs {
  RowMatrix first, second;
  std::vector<double> scores;
};
struct Relatedness {
  double pearson = 0, spearman = 0, mse = 0;
};
// A score y between two whole numbers counts as both of them, weighted by its distance; a softmax
// regression of [|u - v|, u v] on the classes 1 to 5 (Tai et al. 2015) predicts their mean. Its
// strength is the one with the highest Pearson correlation on `valid`.
Relatedness relatedness(const RatedPairs& train, const RatedPairs& valid, const RatedPairs& test,
                        const Monitor& monitor = nobody_watches);

double pearson_correlation(const std::vector<double>& a, const std::vector<double>& b);
// Pearson's correlation of the ranks; equal numbers share their rank.
double spearman_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace keel::study
