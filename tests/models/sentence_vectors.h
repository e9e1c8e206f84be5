// The vectors that skip-thought networks give sentences.
#pragma once

#include <string>
#include <vector>

#include "tests/models/helpers.h"

namespace keel::models {

// The vectors of lines by weights of the first seed, as text.
inline std::vector<std::string> vectors_of(const train::Job& job,
                                           const std::vector<std::string>& lines) {
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  const auto decoder = job.network().decoder(lines, 1);
  evaluator.decode(*decoder);
  return decoder->answers();
}

}  // namespace keel::models
