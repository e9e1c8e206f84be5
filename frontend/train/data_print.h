// What a run's data look like, so that no run is resumed on others without a word.
#pragma once

#include <string>

#include "frontend/task/batch.h"

namespace keel::train {

// "train 28332 rows, 7c0f11aa; valid 1014 rows, 03b2d6e1": of each split a CRC-32 of 128 rows
// evenly spread over it, the first and the last among them: of the sizes of a batch of that row
// alone and of what it holds in whole numbers, such as words, labels and masks. Floating-point
// numbers are left out, for another machine may round them otherwise, and neither the batches' size
// nor their order matters. Data that differ elsewhere alone are taken for the same.
std::string data_print(task::Stream& train, task::Stream& valid);

}  // namespace keel::train
