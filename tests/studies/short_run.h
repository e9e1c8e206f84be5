// A study as tests run it.
#pragma once

#include <string>

#include "studies/study.h"

namespace keel::study {

// Trainings are cut to three steps.
inline Result run(const std::string& name, Backend& backend, std::uint64_t seed = 0) {
  return find_study(name).run({backend, seed, 1, 3});
}

}  // namespace keel::study
