// Trainings of models of the zoo by studies.
#pragma once

#include <string>
#include <vector>

#include "frontend/train/job.h"
#include "studies/study.h"

namespace keel::study {

// The default training of a study.
struct ZooRun {
  std::string task, norm;
  int steps = 0;
  task::OptionValues settings = {};  // on top of the recipe `laptop`
};

// The task or the norms of the options, or else those of the study.
std::string task_of(const Options& options, const std::string& task);
std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms);
// The run with the i-th seed, counted from the first, for weights, batches and drawn data; the
// options' settings are applied last. The network has what it takes from the data.
train::Job zoo_job(const Options& options, int i, const ZooRun& run);

}  // namespace keel::study
