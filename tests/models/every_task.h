// Helpers of the tests of all tasks.
#pragma once

#include <doctest/doctest.h>

#include "models/registry.h"
#include "tests/models/helpers.h"

namespace keel::models {

// Every task of the zoo, small.
template <class Body>
void for_each_task(const Body& body, const Settings& settings = {}) {
  for (const ModelEntry& entry : all_models()) {
    CAPTURE(entry.name);
    body(small_job(settings, entry.name));
  }
}

inline test::SmallFacts facts_of(const train::Job& job) {
  return test::small_facts(job.task().name());
}

inline std::unique_ptr<task::Stream> stream_of(const train::Job& job, task::Split split,
                                               const task::StreamOptions& options) {
  return job.splits().stream(split, options);
}

inline task::StreamOptions training(const train::Job& job, std::uint64_t seed) {
  return {.batch = job.train().batch, .shuffle = seed};
}

}  // namespace keel::models
