// One network that makes vectors of sentences, and what is measured of it.
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

  // Per cent of held-out sentences of the built-in stories whose topic is found.
  double topics() const;
  // A row of the table of real tasks for each that is there, told as it is found.
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
