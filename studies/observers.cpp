#include "studies/observers.h"

#include <algorithm>
#include <string_view>

#include "frontend/train/shard_graph.h"
#include "src/core/nearest.h"
#include "studies/gradients_observer.h"
#include "studies/landscape_observer.h"
#include "studies/singular_values_observer.h"
#include "studies/statistics_observer.h"

namespace keel::study {
namespace {

using train::PeriodUnit;

// An entry of the text.
struct Asked {
  const ObserverKind* kind = nullptr;
  ObserverOptions options;
};

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

const ObserverKind& kind_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ObserverKind& kind : observer_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  fail(ErrorKind::kUsage, "train.observe: {}", unknown_name(name, names));
}

train::Period period_of(std::string_view value, const std::string& where) {
  train::Period period;
  try {
    attr_parse(value, period);
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "{}: every: {}", where, error.what());
  }
  check(period.n > 0, ErrorKind::kUsage, "{}: every: expected at least 1, got {}", where, value);
  return period;
}

void read_option(std::string_view pair, const std::string& where, Asked& asked) {
  const std::size_t equals = pair.find('=');
  check(equals != pair.npos && equals > 0, ErrorKind::kUsage, "{}: expected key=value, got '{}'",
        where, pair);
  const std::string key(pair.substr(0, equals));
  const std::string_view value = pair.substr(equals + 1);
  if (key == "every") {
    asked.options.every = period_of(value, where);
    return;
  }
  std::vector<std::string> keys{"every"};
  if (asked.kind->has_site) keys.push_back("site");
  check(asked.kind->has_site && key == "site", ErrorKind::kUsage, "{}: {}", where,
        unknown_name(key, keys));
  check(!value.empty(), ErrorKind::kUsage, "{}: site: expected a name, got none", where);
  asked.options.site = value;
}

Asked asked_of(std::string_view text) {
  const std::size_t brace = std::min(text.find('{'), text.size());
  Asked asked{&kind_named(std::string(text.substr(0, brace))), {}};
  asked.options = asked.kind->usual;
  if (brace == text.size()) return asked;
  const std::string where = "train.observe: " + asked.kind->name;
  check(text.back() == '}', ErrorKind::kUsage, "{}: expected a closing brace, got '{}'", where,
        text);
  for (const std::string_view pair :
       parts_of(text.substr(brace + 1, text.size() - brace - 2), ',')) {
    read_option(pair, where, asked);
  }
  return asked;
}

std::vector<Asked> all_asked(const std::string& text) {
  std::vector<Asked> all;
  for (const std::string_view part : parts_of(text, ';')) {
    const Asked asked = asked_of(part);
    check(std::ranges::find(all, asked.kind, &Asked::kind) == all.end(), ErrorKind::kUsage,
          "train.observe: expected {} once, got it twice", asked.kind->name);
    all.push_back(asked);
  }
  return all;
}

}  // namespace

bool ObserverOptions::fall_on(const train::ObservedUpdate& update, bool ends) const {
  if (every.unit == PeriodUnit::kEpochs) {
    return update.ends_run() || (update.ends_epoch() && (update.place.epoch + 1) % every.n == 0);
  }
  if (!ends) return update.place.step % every.n == 0;
  return update.ends_run() || update.number() % every.n == 0;
}

std::span<const ObserverKind> observer_kinds() {
  static const std::vector<ObserverKind> kinds{
      {"statistics",
       "at one norm over the batch: the distance of a batch's statistics from the running ones, "
       "and the gradients that pass through them",
       "Shen et al. 2020, figures 2 to 4",
       {.every = {1, PeriodUnit::kUpdates}},
       true,
       statistics_observer},
      {"gradients",
       "at every norm: the lengths of the incoming and the outgoing gradient",
       "Shen et al. 2020, lemma 2 and figure 7",
       {.every = {1, PeriodUnit::kUpdates}},
       false,
       gradients_observer},
      {"singular-values",
       "the singular values of a table of embeddings",
       "Shen et al. 2020, figure 6",
       {.every = {1, PeriodUnit::kEpochs}},
       true,
       singular_values_observer},
      {"landscape",
       "the ranges of the loss and of its gradient along the gradient, from half the rate to four "
       "times it",
       "Santurkar et al. 2018, figure 4",
       {.every = {5, PeriodUnit::kUpdates}},
       false,
       landscape_observer},
  };
  return kinds;
}

void check_observe(const std::string& text) { all_asked(text); }

void expect_whole_statistics(const train::Job& job, const std::string& kind) {
  const std::int64_t parts = job.train().accumulate;
  check(parts == 1 || !train::shares_statistics(job), ErrorKind::kUsage,
        "train.observe: {}: expected train.accumulate = 1 or train.statistics = local, for it sees "
        "one of the micro-batches that share their statistics, got {}",
        kind, parts);
}

std::vector<std::unique_ptr<train::Observer>> observers_of(const train::Job& job) {
  std::vector<std::unique_ptr<train::Observer>> observers;
  for (const Asked& asked : all_asked(job.train().observe)) {
    observers.push_back(asked.kind->make(job, asked.options));
  }
  return observers;
}

}  // namespace keel::study
