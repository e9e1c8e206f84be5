// Trainings of models of the zoo by studies.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/train/job.h"
#include "studies/study.h"

namespace keel::study {

// The default training of a study.
struct ZooRun {
  std::string task, norm;
  int steps = 0;
  task::OptionValues settings = {};  // on top of the recipe
  // Whether it measures as the recipe says. Otherwise it is in memory and measures nothing.
  bool measures = false;
};

// The task or the norms of the options, or else those of the study.
std::string task_of(const Options& options, const std::string& task);
std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms);
// Throws Error{kUsage} if one is given twice.
std::vector<std::string> distinct_norms_of(const Options& options,
                                           const std::vector<std::string>& norms);
// Batch norm, PN-V and PowerNorm as Shen et al. 2020 have them in a translation: a batch norm that
// keeps 0.95, and a PowerNorm with as many groups as heads and the warm-up of the learning rate,
// first by their algorithm 2, then, at the end, as their program computes it.
std::vector<std::string> source_norms(const Options& options, const std::string& task);
// Plain gradient descent, which Santurkar et al. 2018 study: at a rate of 0.1, or at the recipe's
// in the deep linear network, which 0.1 makes diverge without a norm.
task::OptionValues descent_settings(const std::string& task);
// The settings for a translation with norms only in the encoder, where Shen et al. 2020 have
// theirs.
task::OptionValues encoder_settings(const std::string& task);
// Whether a study's trainings go on to the end of the recipe: where one is named, and no steps.
bool is_to_the_end(const Options& options);
// The number of seeds of the options, or else of the study.
int seeds_of(const Options& options, int study);
// A checkpoint that was trained before, with the options' settings on top of its own.
struct StoredRun {
  std::string path;
  io::TensorFile file;
  train::Job job;
};
StoredRun open_run(const Options& options, const std::string& path);
// All runs of the options.
std::vector<StoredRun> open_runs(const Options& options);
// The folder of the run that a checkpoint is of.
std::filesystem::path run_folder_of(const std::string& checkpoint);
// The corpus of a run of `translation` that was trained to its end (is_whole) on real data:
// "iwslt14"; empty for any other run.
std::string finished_corpus_of(const StoredRun& run);
// Whether a run has finished, and not because of a train.max_steps that no recipe of its task has.
bool is_whole(const StoredRun& run);
// Whether an observer has written anything into the folder of a run.
bool is_observed(const StoredRun& run, const std::string& observer);
// The lines that an observer has written into the folder of a run (train.observe).
// Throws Error{kBadInput} if the run was not observed so.
std::vector<nlohmann::ordered_json> observed_lines(const StoredRun& run,
                                                   const std::string& observer);
// Throws Error{kUsage} unless the runs of a task have the same settings besides seeds, logging and
// those that `may_differ` names.
void expect_one_recipe(const std::string& study, std::span<const StoredRun> runs,
                       std::span<const std::string_view> may_differ);
// The value of a key in a job: "model.norm" is "powernorm{warmup=4000}". Empty for an unknown key.
std::string setting_of(const train::Job& job, const std::string& key);
// The run with the i-th seed, counted from the first, for weights, batches and drawn data; the
// options' settings are applied last. The network has what it takes from the data.
train::Job zoo_job(const Options& options, int i, const ZooRun& run);
// The same for studies that differentiate the batch of an update themselves, or cut it up: throws
// Error{kUsage} if an update has several.
train::Job zoo_job_of_one_batch(const Options& options, int i, const ZooRun& run);

}  // namespace keel::study
