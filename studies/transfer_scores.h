// How good vectors of sentences are for tasks that they were not trained for, as Kiros et al. 2015,
// section 3, and Ba et al. 2016, table 3, measure it.
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

// The strengths (regression.h) among which is chosen: those of a logistic regression with C of 2^0
// to 2^8. Of two classes both have a vector of weights, which share the penalty of the one vector
// of a logistic regression, so that C is twice the strength there.
std::vector<double> strengths_of(std::int32_t classes);

// Rows are put into parts by an order drawn by the seed.
struct FoldOptions {
  std::uint64_t seed = 0;
  int folds = 10;
};

// Is told now and then which part, in (0, 1], is done.
using Watch = std::function<void(double part)>;
inline void nobody_watches(double) {}

// The share of rows that a softmax regression puts into their class, in per cent. Nested
// cross-validation: of each of `folds` parts by a regression of the others, whose strength was
// chosen by cross-validation among these.
double cross_validated_accuracy(const Labelled& data, const FoldOptions& options,
                                const Watch& watch = nobody_watches);
// By a regression of `train`, the strength being chosen by cross-validation there.
double test_accuracy(const Labelled& train, const Labelled& test, const FoldOptions& options);

// Pairs of sentences and how related people find them, 1 to 5.
struct RatedPairs {
  RowMatrix first, second;
  std::vector<double> scores;
};
struct Relatedness {
  double pearson = 0, spearman = 0, mse = 0;
};
// A score y between two whole numbers is both of them, by how near it is; a softmax regression of
// [|u - v|, u v] on the classes 1 to 5 (Tai et al. 2015) predicts their mean. Its strength is the
// one with the highest Pearson correlation on `valid`.
Relatedness relatedness(const RatedPairs& train, const RatedPairs& valid, const RatedPairs& test,
                        const Watch& watch = nobody_watches);

double pearson_correlation(const std::vector<double>& a, const std::vector<double>& b);
// Pearson's of the ranks, equal numbers sharing theirs.
double spearman_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace keel::study
