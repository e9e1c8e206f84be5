// The output of `keel eval` on confusions between classes.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "frontend/task/confusion.h"
#include "frontend/task/network.h"

namespace keel::cli {

// A scorer that only observes, for a model with classes; null for a model without.
std::unique_ptr<task::ConfusionScorer> confusion_scorer_of(const task::Network& network);

// Up to 20 classes: a row for each true class, with the counts of predicted classes and the class's
// precision, recall and F1. More classes: the most frequent confusions.
std::string confusion_text(const task::Confusion& confusion);

// {"labels": [...], "counts": [[...]], "classes": [{"label", "rows", "predicted", "precision",
// "recall", "f1"}], "macro_f1"}: counts[i][j] rows of class i were taken for class j. With more
// than 1,000 classes "pairs", [[i, j, rows], ...] of confused classes, replace "counts". Shares are
// of 1; a share of no rows is null.
nlohmann::ordered_json confusion_json(const task::Confusion& confusion);

// A line for each row of the split, in order, separated by tabs: its number in the source, from 0
// on, the true label, the predicted label and the probability of that; no label and nan if outputs
// were NaN.
std::string classified_text(const task::ConfusionScorer& scorer, const task::Stream& rows);

}  // namespace keel::cli
