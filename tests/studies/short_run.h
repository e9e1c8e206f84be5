// A study as tests run it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "studies/study.h"
#include "tests/support/small_run.h"

namespace keel::study {

// Trainings are cut to three steps.
inline Result run(const std::string& name, Backend& backend, std::uint64_t seed = 0) {
  return find_study(name).run({backend, seed, 1, 3});
}

// Six updates.
inline Options on_small_digits(Backend& backend) {
  Options options{backend, 0, 1, 6};
  options.task = "mnist_mlp";
  options.data = test::small_digits().string();
  options.settings = {{"train.batch", "32"}, {"model.hidden", "8"}};
  return options;
}

inline Result run_small(const std::string& name, const Options& options) {
  return find_study(name).run(options);
}

// A translation in miniature.
inline Options on_small_pairs(Backend& backend) {
  Options options{backend, 0, 1, 3};
  options.task = "translation";
  options.data = test::small_pairs().string();
  options.settings = {{"model.layers", "1"},       {"model.width", "8"},   {"model.heads", "2"},
                      {"model.feed_forward", "8"}, {"model.longest", "3"}, {"model.beam", "1"},
                      {"train.batch", "128"}};
  return options;
}

// Checkpoints of translations in miniature after an epoch of one update: seeds 1, 2, ... of every
// norm.
inline std::vector<std::string> small_translations(const std::filesystem::path& folder,
                                                   const std::vector<std::string>& norms,
                                                   int seeds) {
  std::vector<std::string> runs;
  for (const std::string& norm : norms) {
    for (int seed = 1; seed <= seeds; ++seed) {
      const std::filesystem::path run = folder / fmt::format("{}{}", norm, seed);
      test::train_in(run, test::small_job({"model.norm=" + norm, fmt::format("train.seed={}", seed),
                                           "train.epochs=1", "train.batch=100000"},
                                          "translation"));
      runs.push_back(test::step_file(run, 1).string());
    }
  }
  return runs;
}

}  // namespace keel::study
