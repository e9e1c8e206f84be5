// Runs grouped by model, and by their settings.
#pragma once

#include <span>

#include "frontend/report/run.h"

namespace keel::report {

// Runs that differ in nothing but their seeds (train.seed, data.seed).
struct Group {
  std::string label;  // its difference from the others, "batchnorm, lr=0.01"; the model if only one
  std::vector<std::string> settings;  // values of Section::differing; "-": none of that name
  std::vector<const Run*> runs;
};

// The runs of one model.
struct Section {
  std::string model;
  std::vector<std::string> differing;  // the settings that differ between groups
  std::vector<Group> groups;
};

// Models and groups in the order in which the runs first name them. The runs must outlive them.
std::vector<Section> sections_of(std::span<const Run> runs);

// train.seed; "" for a run without one.
std::string seed_of(const Run& run);

// Calls visit(group, run) for every run.
template <class Visit>
void for_each_run(const Section& section, Visit visit) {
  for (const Group& group : section.groups) {
    for (const Run* run : group.runs) visit(group, *run);
  }
}

}  // namespace keel::report
