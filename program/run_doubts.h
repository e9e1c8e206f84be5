// The reasons to doubt the result of a training, as sentences for its end.
#pragma once

#include <string>
#include <vector>

#include "frontend/train/job.h"
#include "frontend/train/trainer.h"

namespace keel::cli {

// Updates that end within the warm-up, a loss far above the first one, and a classifier that is no
// better than one that always gives the most frequent class of the test rows.
std::vector<std::string> doubts_of(const train::Job& job, const train::Summary& summary);

}  // namespace keel::cli
