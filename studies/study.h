// Theory as programs: each study computes a claim of the papers, gives the numbers as tables, and
// says for every claim whether it held.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/io/plot.h"
#include "src/core/choice.h"
#include "src/runtime/backend.h"

namespace keel::study {

struct Options {
  Backend& backend;        // exact studies need one that stores float64
  std::uint64_t seed = 0;  // the first seed
  int seeds = 0;           // number of seeds, from the first on; 0: as many as the source reports
  int steps = 0;           // of every training; 0: as many as the study takes
  // For a study that takes a task: a task of the zoo, norms, a folder with its data and settings
  // like {"train.lr", "0.1"}. Empty: the study's own task and norms, built-in data, the recipe's
  // settings. Studies of runs take settings, too.
  std::string task = {};
  std::string recipe = {};  // of the task; empty: laptop
  std::vector<std::string> norms = {};
  std::string data = {};
  std::string site = {};  // the norm to look at; empty: the first
  std::vector<std::pair<std::string, std::string>> settings = {};
  // For a study that takes runs: checkpoints to look at in place of its own trainings.
  std::vector<std::string> runs = {};
  bool quiet = true;  // otherwise a study that takes long reports its progress on stderr
};

// Numbers under headings; a cell is text already rounded for reading.
struct Table {
  std::string title;
  std::vector<std::vector<std::string>> rows;  // the first is the heading, no two names alike
};

// One claim: the measured value and its bound. A claim that is not judged counts neither as held
// nor as failed; its `bound` says what judging it takes.
struct Check {
  std::string claim, bound;
  double measured = 0;
  bool holds = false;
  bool judged = true;
  std::size_t seeds = 1;   // that it rests on: the measured value is the worst of them, or tested
  bool is_tested = false;  // by a t test over the seeds
  bool is_mean = false;    // the measured value is their mean, and no test says how sure it is
};

// The result of a check for its claim. docs/results.md asks for three seeds, and for a test or a
// bound that holds in each of them.
enum class Standing { kHolds, kFails, kNotShown, kSuggested, kDoubted, kOpen };
constexpr auto choice_words(Standing) {
  return std::to_array<std::string_view>({"Held here", "Not held here", "Not shown by the test",
                                          "Suggested, which three seeds could confirm",
                                          "Not suggested", "Not judged"});
}

// A plot, and what its file is called. The plot's title is its caption, which stands below it: the
// quantity, what lines and bands are, and the trainings with their seeds (studies/sample.h).
struct Drawing {
  std::string name;
  io::Plot plot;
};

struct Result {
  std::vector<Table> tables;
  std::vector<Check> checks;
  std::vector<Drawing> drawings = {};
  std::size_t seeds = 1;  // that the checks rest on that are added from now on

  // Adds measured <= bound, measured > bound or |measured - expected| <= tolerance as a check; NaN
  // never holds.
  void at_most(std::string claim, double measured, double bound);
  void above(std::string claim, double measured, double bound);
  void near(std::string claim, double measured, double expected, double tolerance);
  // Adds a claim that this run is too small to judge: `needs` says what it takes.
  void not_judged(std::string claim, double measured, std::string needs);
  // A claim that a quantity, one value a seed, is above 0: adds their mean as a check that holds if
  // it is significant, that is if mean_at_least() of the values is above 0. It is not judged when
  // there are fewer than three.
  void above_zero_over_seeds(std::string claim, std::span<const double> values);
  // A claim that such a quantity is no less than 0: it holds unless its mean is significantly less,
  // by the same test. It is not judged when there are fewer than three.
  void not_below_zero_over_seeds(std::string claim, std::span<const double> values);
  // A claim about a mean over seeds: adds the mean of the values, one a seed, > bound as a check
  // that is not judged when there are fewer than `needed`.
  void above_on_average(std::string claim, std::span<const double> values, double bound,
                        int needed);
  bool holds() const;
  // Leaves the claims open that do not hold: trainings that were cut short do not refute what a
  // source says of trainings to their end.
  void leave_open_what_fails();
};

struct Study {
  std::string name, about, source;  // source: paper and place, "Xu et al. 2019, theorem 1"
  Result (*run)(const Options& options);
  bool exact = false;       // algebra that must hold to rounding in float64; one seed shows it
  bool takes_task = false;  // and recipe, norms, data, steps and settings
  bool takes_runs = false;
  bool in_float64 = false;  // takes a backend that stores it, as exact ones do
};

std::span<const Study> studies();

// `is_exact`: of a Study that is exact, which one seed shows.
Standing standing_of(const Check& check, bool is_exact);

// The source, its subject, how many claims were seen to hold, by what evidence, and those that were
// not, as a short paragraph.
std::string paragraph_of(const Study& study, const Result& result);

// Throws Error{kUsage} for an unknown name, with the nearest known one.
const Study& find_study(const std::string& name);

}  // namespace keel::study
