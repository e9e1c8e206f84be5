// Measurements of one network that makes vectors of sentences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/train/job.h"
#include "frontend/train/progress.h"
#include "models/skip_thoughts/corpus.h"
#include "studies/study.h"
#include "studies/transfer_data.h"
#include "studies/transfer_scores.h"

namespace keel::study {

// Runs the batches that a decoder asks for.
using Decode = std::function<void(task::Decoder&)>;

class TransferProbe {
 public:
  // All arguments must outlive the object. Throws Error{kUsage} for a model that makes no vectors.
  TransferProbe(const train::Job& job, Decode decode, const Options& options,
                train::Progress& progress)
      : job_(job), decode_(std::move(decode)), options_(options), progress_(progress) {}

  // The held-out sentences of the built-in stories whose topic is found, in per cent.
  double topics() const;
  // Adds a row for each real task whose data exist, and reports it as soon as it is measured.
  void add_tasks(Table& table, const std::string& network) const;

 private:
  RowMatrix vectors_of(const std::string& what, const std::vector<std::string>& lines) const;
  Labelled stories(const std::vector<models::Passage>& passages) const;
  RatedPairs pairs(const std::string& what, const RatedLines& lines) const;
  void add(Table& table, const std::vector<std::string>& row) const;

  const train::Job& job_;
  Decode decode_;
  const Options& options_;
  train::Progress& progress_;
};

}  // namespace keel::study
