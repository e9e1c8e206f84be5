// Which number of a norm's batch statistics ranks norms as their test results do (Wang et al. 2022
// hold the distance of training from inference to be one).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "studies/statistics_tables.h"

namespace keel::study {

// Spearman's rank correlation: Pearson's of the ranks, from 1 on, equal values sharing the mean of
// theirs. NaN if all values of a list are equal. The lists have one length.
double rank_correlation(std::span<const double> a, std::span<const double> b);

// The share of all orders of b whose correlation with a is as far from 0 or farther: the p of an
// exact two-sided test. Nothing for more than 9 values, or where there is no correlation.
std::optional<double> order_chance(std::span<const double> a, std::span<const double> b);

// A row a task and number: the correlation over norms of the number's median after the first third
// with the cost of the test result, both means over seeds. No rows for a task with fewer than three
// norms that were tested.
Table ranks_table(const std::vector<StatisticsRun>& runs);

}  // namespace keel::study
