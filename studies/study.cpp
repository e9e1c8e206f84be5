#include "studies/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/core/nearest.h"
#include "studies/list.h"
#include "studies/summary.h"

namespace keel::study {

void Result::at_most(std::string claim, double measured, double bound) {
  checks.push_back({.claim = std::move(claim),
                    .bound = fmt::format("<= {:g}", bound),
                    .measured = measured,
                    .holds = measured <= bound,
                    .seeds = seeds});
}

void Result::above(std::string claim, double measured, double bound) {
  checks.push_back({.claim = std::move(claim),
                    .bound = fmt::format("> {:g}", bound),
                    .measured = measured,
                    .holds = measured > bound,
                    .seeds = seeds});
}

void Result::near(std::string claim, double measured, double expected, double tolerance) {
  checks.push_back({.claim = std::move(claim),
                    .bound = fmt::format("{:g} +- {:g}", expected, tolerance),
                    .measured = measured,
                    .holds = std::abs(measured - expected) <= tolerance,
                    .seeds = seeds});
}

void Result::not_judged(std::string claim, double measured, std::string needs) {
  checks.push_back({.claim = std::move(claim),
                    .bound = std::move(needs),
                    .measured = measured,
                    .judged = false,
                    .seeds = seeds});
}

void Result::above_zero_over_seeds(std::string claim, std::span<const double> values) {
  const double mean = mean_of(values);
  if (values.size() < 3) return not_judged(std::move(claim), mean, "needs 3 seeds");
  const double least = mean_at_least(values);
  checks.push_back({.claim = std::move(claim),
                    .bound = fmt::format("> 0; of {} seeds at least {:.3g}", values.size(), least),
                    .measured = mean,
                    .holds = least > 0,
                    .seeds = values.size(),
                    .is_tested = true});
}

void Result::not_below_zero_over_seeds(std::string claim, std::span<const double> values) {
  const double mean = mean_of(values);
  if (values.size() < 3) return not_judged(std::move(claim), mean, "needs 3 seeds");
  std::vector<double> negative;
  for (const double value : values) negative.push_back(-value);
  const double most = -mean_at_least(negative);
  checks.push_back(
      {.claim = std::move(claim),
       .bound = fmt::format("not below 0; of {} seeds at most {:.3g}", values.size(), most),
       .measured = mean,
       .holds = most >= 0,
       .seeds = values.size(),
       .is_tested = true});
}

void Result::above_on_average(std::string claim, std::span<const double> values, double bound,
                              int needed) {
  const double mean = std::reduce(values.begin(), values.end()) / double(values.size());
  if (std::ssize(values) >= needed) {
    above(std::move(claim), mean, bound);
    checks.back().seeds = values.size();
    checks.back().is_mean = true;
    return;
  }
  not_judged(std::move(claim), mean, fmt::format("needs {} seeds", needed));
}

void Result::leave_open_what_fails() {
  for (Check& check : checks) {
    if (!check.judged || check.holds) continue;
    check.judged = false;
    check.bound += "; not so here, which only trainings to their end refute";
  }
}

bool Result::holds() const {
  return std::ranges::all_of(checks, [](const Check& c) { return c.holds || !c.judged; });
}

std::span<const Study> studies() {
  constexpr bool kExact = true, kTakesTask = true, kTakesRuns = true, kInFloat64 = true;
  static const std::vector<Study> list{
      {"fisher", "Fisher metric and implicit learning rate of normalized models",
       "Ba, Kiros, Hinton 2016, section 5.2", fisher, kExact},
      {"invariance", "which norms see which change of weights and data",
       "Ba, Kiros, Hinton 2016, table 1", invariance, kExact},
      {"lemma2", "the length of the gradient after BatchNorm and PN-V", "Shen et al. 2020, lemma 2",
       lemma2, kExact},
      {"theorem1", "mean and variance of the gradient when statistics are detached",
       "Xu et al. 2019, theorem 1", theorem1, kExact},
      {"theorem2", "the scaling of AdaNorm is the only one of its kind",
       "Xu et al. 2019, theorem 2", theorem2, kExact},
      {"theorem4", "PowerNorm's gradient is bounded while its recursion contracts",
       "Shen et al. 2020, theorem 4", theorem4, kExact},
      {"theorem1-training", "theorem 1 at every norm of a network in training",
       "Xu et al. 2019, theorem 1", theorem1_training, kExact},
      {"fisher-training", "how a network's weights grow and turn, with norms and without",
       "Ba, Kiros, Hinton 2016, section 5.2", fisher_training, kExact},
      {"theorem4-training", "PowerNorm's recursion in the training of a network",
       "Shen et al. 2020, theorem 4", theorem4_training},
      {"recurrent-dynamics",
       "how states and gradients of a recurrent network grow or shrink over 500 steps",
       "Ba, Kiros, Hinton 2016, section 3.1", recurrent_dynamics, false, false, false, kInFloat64},
      {"figure7", "gain / psi of PN-V after training, by layer", "Shen et al. 2020, figure 7",
       figure7, false, kTakesTask, kTakesRuns},
      {"convergence", "curves of a task with several norms, and how much faster each gets there",
       "Ba, Kiros, Hinton 2016, figures 1 to 6; Xu et al. 2019, figures 1 to 3", convergence, false,
       kTakesTask, kTakesRuns},
      {"boundary-units", "boundary and inner units of convolutions",
       "Ba, Kiros, Hinton 2016, section 6.7", boundary_units, false, kTakesTask},
      {"covariate-shift", "how a layer's gradient changes when those before it are updated",
       "Santurkar et al. 2018, definition 2.1", covariate_shift, false, kTakesTask},
      {"noisy-batchnorm", "noise after BatchNorm: unstable activations that do not harm training",
       "Santurkar et al. 2018, section 2.1", noisy_batchnorm, false, kTakesTask},
      {"statistics", "how far a batch's statistics are from the running ones, at one norm",
       "Shen et al. 2020, figures 2 to 4", statistics, false, kTakesTask, kTakesRuns},
      {"batch-size", "updates of one size with statistics of ever smaller batches",
       "Shen et al. 2020, figure 5", batch_size, false, kTakesTask, kTakesRuns},
      {"singular-values", "how fast the singular values of a trained embedding fall",
       "Shen et al. 2020, figure 6", singular_values, false, kTakesTask, kTakesRuns},
      {"landscape", "how the loss and its gradient vary along the gradient",
       "Santurkar et al. 2018, figure 4", landscape, false, kTakesTask},
      {"transfer", "how useful sentence vectors are for tasks that they were not trained for",
       "Kiros et al. 2015, section 3; Ba, Kiros, Hinton 2016, table 3", transfer, false, kTakesTask,
       kTakesRuns},
      {"mini-batchsize", "BatchNorm and LayerNorm at batches of 128 and of 4 rows",
       "Ba, Kiros, Hinton 2016, section 6.6", mini_batchsize},
      {"mini-layernorm", "LayerNorm and its detached variants on a small residual network",
       "Xu et al. 2019, tables 1 to 4", mini_layernorm},
      {"mini-powernorm", "PowerNorm, BatchNorm and LayerNorm on small sentences of uneven scale",
       "Shen et al. 2020, tables 1 and 4, figures 2 and 4", mini_powernorm},
  };
  return list;
}

Standing standing_of(const Check& check, bool is_exact) {
  constexpr std::size_t kNeeded = 3;
  if (!check.judged) return Standing::kOpen;
  if (!is_exact && (check.seeds < kNeeded || check.is_mean)) {
    return check.holds ? Standing::kSuggested : Standing::kDoubted;
  }
  if (check.holds) return Standing::kHolds;
  return check.is_tested ? Standing::kNotShown : Standing::kFails;
}

namespace {

// "a (0.12); b (3); and 4 more" of the claims with a standing; "" where there are none.
std::string claims_text(const Study& study, const Result& result, Standing standing) {
  constexpr int kMost = 3;
  std::string text;
  int count = 0;
  for (const Check& c : result.checks) {
    if (standing_of(c, study.exact) != standing || ++count > kMost) continue;
    text += fmt::format("{}{} ({:.3g})", count > 1 ? "; " : "", c.claim, c.measured);
  }
  if (count > kMost) text += fmt::format("; and {} more", count - kMost);
  return text;
}

std::ptrdiff_t count_of(const Study& study, const Result& result, Standing standing) {
  return std::ranges::count_if(
      result.checks, [&](const Check& c) { return standing_of(c, study.exact) == standing; });
}

std::string claims(std::ptrdiff_t count) {
  return fmt::format("{} claim{}", count, count == 1 ? "" : "s");
}

// The sentence on claims that hold; "" where there are none.
std::string held_text(const Study& study, const Result& result) {
  const std::ptrdiff_t held = count_of(study, result, Standing::kHolds);
  if (held == 0) return "";
  return fmt::format(" {} hold{} {}.", claims(held), held == 1 ? "s" : "",
                     study.exact ? "to rounding" : "over three seeds or more");
}

std::string suggested_text(const Study& study, const Result& result) {
  const std::ptrdiff_t suggested = count_of(study, result, Standing::kSuggested);
  if (suggested == 0) return "";
  const bool is_one_seed = std::ranges::all_of(result.checks, [&](const Check& c) {
    return standing_of(c, study.exact) != Standing::kSuggested || c.seeds == 1;
  });
  return fmt::format(" {} that {} hold{}; a verdict takes three seeds and a test.",
                     is_one_seed ? "One seed suggests" : "The numbers suggest", claims(suggested),
                     suggested == 1 ? "s" : "");
}

}  // namespace

std::string paragraph_of(const Study& study, const Result& result) {
  std::string text = fmt::format("{}, on {}.", study.source, study.about);
  text += held_text(study, result) + suggested_text(study, result);
  for (const auto& [standing, words] : {std::pair{Standing::kFails, "Not held"},
                                        {Standing::kNotShown, "Not shown by the t test"},
                                        {Standing::kDoubted, "Not seen"}}) {
    const std::string failed = claims_text(study, result, standing);
    if (!failed.empty()) text += fmt::format(" {}: {}.", words, failed);
  }
  const std::ptrdiff_t open = count_of(study, result, Standing::kOpen);
  if (open > 0)
    text +=
        fmt::format(" {} measured and not judged.", claims(open) + (open == 1 ? " was" : " were"));
  return text;
}

const Study& find_study(const std::string& name) {
  std::vector<std::string> names;
  for (const Study& study : studies()) {
    if (study.name == name) return study;
    names.push_back(study.name);
  }
  fail(ErrorKind::kUsage, "study: {}", unknown_name(name, names));
}

}  // namespace keel::study
