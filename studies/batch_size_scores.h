// The scores on the test set of networks whose updates were gathered from batches of one size.
#pragma once

#include <string>
#include <vector>

#include "studies/zoo_job.h"

namespace keel::study {

// Trainings of one norm with statistics of one size.
struct BatchSizeRun {
  std::string norm;
  std::int64_t batch = 0;                // rows or tokens of a statistic
  std::vector<std::int64_t> seeds{};     // of the values below
  std::vector<double> loss{}, metric{};  // the loss of the test set, the last metric
  std::string metric_name{}, metric_unit{};
  bool higher_is_better = false;  // of the metric
  std::string weights{};          // that were measured, "averaged" or "best"
  std::string training{};         // training_text
};

// Trains as `keel train` does, and adds the score of the average of the last checkpoints or, where
// the recipe has none, of the best weights.
void add_trained_score(Backend& backend, const train::Job& job, BatchSizeRun& run);

// Adds the same of a run: what it says itself if it has finished, unless the options change its
// settings, and otherwise what is measured here.
void add_score_of(const Options& options, const StoredRun& stored, BatchSizeRun& run);

}  // namespace keel::study
