// The observers that `keel train --observe` can write (train.observe), for studies to evaluate.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/train/observer.h"

namespace keel::study {

struct ObserverOptions {
  train::Period every;    // how often it looks
  std::string site = {};  // what it looks at; empty: the first

  // Whether it falls on an update, the first one included or, if `ends`, on the last one of each
  // period. A period of epochs falls on the update that ends the epochs, and on the run's last one.
  bool fall_on(const train::ObservedUpdate& update, bool ends = false) const;
};

struct ObserverKind {
  std::string name, about, source;
  ObserverOptions usual;
  bool has_site = false;
  // Throws Error{kUsage} if the job's network has nothing of the kind to look at.
  std::unique_ptr<train::Observer> (*make)(const train::Job& job, const ObserverOptions& options);
};
std::span<const ObserverKind> observer_kinds();

// Throws Error{kUsage}, which begins with "train.observe", unless a text reads
// "KIND{key=value,...};KIND" with each kind once.
void check_observe(const std::string& text);
// For observers that see the first micro-batch of an update. Throws Error{kUsage} where norms see
// more.
void expect_whole_statistics(const train::Job& job, const std::string& kind);
// The observers that train.observe asks for. Throws Error{kUsage} as above, and for an observer
// that the task cannot have.
std::vector<std::unique_ptr<train::Observer>> observers_of(const train::Job& job);

}  // namespace keel::study
