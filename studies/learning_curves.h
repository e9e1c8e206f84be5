// Curves of trainings of one task with several norms, over seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/study.h"

namespace keel::study {

// A point of a curve: the mean training loss since the point before, and the validation set.
struct CurvePoint {
  std::int64_t step = 0;  // updates done
  double epoch = 0, train_loss = 0, valid_loss = 0, metric = 0;
  double plain_loss = 0;  // the training loss without label smoothing; NaN if unknown
  double cost = 0;        // the metric or its negative: less is better
};
using TrainingCurve = std::vector<CurvePoint>;

struct NormCurves {
  std::string norm;
  std::vector<TrainingCurve> seeds;
  std::vector<std::int64_t> numbers;  // of the seeds
  std::string training = {};          // training_text
};

// The task, the metric and the data that all curves have in common.
struct CurvesTask {
  std::string name, metric;
  // The real data on which all runs were trained to the end: the corpus for translations and
  // text_classifier ("rt", however the seed splits it), otherwise the source of training rows.
  // Empty for other runs.
  std::string data = {};
  std::string unit = {};  // of the metric
};

// Fills `all` with the curves of the runs in the options, read from the logs in their folders. A
// curve has a point at each validation; its training loss is the mean of those logged since the
// validation before. Where the run smoothed its labels, that loss has them, and no log says what it
// is without. Norms come in the order of the runs. Throws Error{kUsage} unless the runs are of one
// task and every norm has runs of the same seeds, each once; Error{kBadInput} for a run without a
// validation.
CurvesTask curves_of_runs(const Options& options, std::vector<NormCurves>& all);

}  // namespace keel::study
