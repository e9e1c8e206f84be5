// The trainings that a figure shows, as its caption names them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "studies/zoo_job.h"

namespace keel::study {

// "mnist_mlp on built-in digits, 4000 training rows".
std::string training_text(const train::Job& job);
// The same without the number of rows, because the data of a stored run may be gone.
std::string training_text(const StoredRun& run);

class Sample {
 public:
  // Adds a training (training_text) with its seed to the line that shows it.
  void add(const std::string& line, const std::string& training, std::int64_t seed);
  // "WHAT; mnist_mlp on built-in digits, 4000 training rows; n = 3 seeds (0, 1, 2)", where n is the
  // number of seeds of a line, or "1 to 3" if lines differ.
  std::string caption(const std::string& what) const;

 private:
  std::set<std::string> trainings_;
  std::map<std::string, std::set<std::int64_t>> seeds_;  // by line
};

}  // namespace keel::study
