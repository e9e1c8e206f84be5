// What studies train of the zoo.
#pragma once

#include <string>
#include <vector>

#include "frontend/train/job.h"
#include "studies/study.h"

namespace keel::study {

// What a study trains unless its options say otherwise.
struct ZooRun {
  std::string task, norm;
  int steps = 0;
  task::OptionValues settings = {};  // on top of the recipe `laptop`
};

// The task or the norms that are asked for, or else those of the study.
std::string task_of(const Options& options, const std::string& task);
std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms);
// The run with the i-th seed from the first on, for weights, batches and data that are drawn; the
// options' settings come last. The network knows what it takes from the data.
train::Job zoo_job(const Options& options, int i, const ZooRun& run);

}  // namespace keel::study
