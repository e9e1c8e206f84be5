// How `keel eval` shows which classes a classifier took for which.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "frontend/task/confusion.h"
#include "frontend/task/network.h"

namespace keel::cli {

// Looks on for a model that has classes; null for one that has none.
std::unique_ptr<task::ConfusionScorer> confusion_scorer_of(const task::Network& network);

// Up to 20 classes: a row each true class, with the counts of what its rows were taken for, and the
// class's precision, recall and F1. Of more classes: the pairs that were confused most often.
std::string confusion_text(const task::Confusion& confusion);

// {"labels": [...], "counts": [[...]], "classes": [{"label", "rows", "predicted", "precision",
// "recall", "f1"}], "macro_f1"}: counts[i][j] rows of class i were taken for class j. With more
// than 1,000 classes "pairs", [[i, j, rows], ...] of those that were confused, stand in for
// "counts". Shares are of 1; null: of nothing.
nlohmann::ordered_json confusion_json(const task::Confusion& confusion);

// A line each row of the split, in order, with tabs between: its number from 0 on, the true label,
// the predicted one and the probability of that.
std::string classified_text(const task::ConfusionScorer& scorer);

}  // namespace keel::cli
