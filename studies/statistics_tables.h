// These tables and drawings show what the study of batch statistics saw in its trainings (Shen et
// al. 2020, figures 2 to 4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "studies/batch_statistics.h"
#include "studies/study.h"

namespace keel::study {

struct StatisticsLine {
  std::int64_t step = 0;  // the number of the update
  double epoch = 0;
  BatchStatistics found = {};
};

// One training, with an eye on one norm.
struct StatisticsRun {
  std::string task, norm, label, site, seed;
  std::string training = {};        // training_text
  bool is_scaled = false;           // the rows in front of the norm are
  bool is_whole = false;            // it was trained to its end
  std::optional<double> cost = {};  // the first metric on the test rows, negative if more is better
  std::vector<StatisticsLine> lines = {};
};

using StatisticsField = double BatchStatistics::*;

// One of the numbers of an update.
struct StatisticsName {
  const char *name, *words;
  StatisticsField field;
  bool of_mean, of_gradient;
  bool of_source = true;  // Shen et al. draw it

  // Whether the norm has such a number: a mean of its rows, a gradient through its statistics.
  bool is_there(const std::string& norm) const;
};
inline constexpr StatisticsName kStatisticsNames[] = {
    {"dist_mu", "distance of the batch's means from the running ones",
     &BatchStatistics::distance_mean, true, false},
    {"dist_square", "distance of the batch's variances or mean squares from the running ones",
     &BatchStatistics::distance_square, false, false},
    {"gnorm_mu", "length of the gradient through the batch's means",
     &BatchStatistics::gradient_mean, true, true},
    {"gnorm_square", "length of the gradient through the batch's variances or mean squares",
     &BatchStatistics::gradient_square, false, true},
    {"tid_mean", "distance of the batch's means from the running ones, in running deviations",
     &BatchStatistics::tid_mean, true, false, false},
    {"tid_deviation", "distance of the batch's deviations from the running ones, in these",
     &BatchStatistics::tid_deviation, false, false, false}};

// The values of one of the thirds of a training, 0 to 2. In the first the running statistics come
// from 0 and 1.
std::vector<double> values_in(const StatisticsRun& run, StatisticsField field, int third);

// The values after the first third.
std::vector<double> settled(const StatisticsRun& run, StatisticsField field);

// Summaries by thirds and by epochs, and every line.
std::vector<Table> statistics_tables(const std::vector<StatisticsRun>& runs);

// A number along the updates, of the first seed.
Drawing statistics_drawing(const std::vector<StatisticsRun>& runs, const StatisticsName& what);

}  // namespace keel::study
