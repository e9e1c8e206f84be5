// One training by `keel train` in a process of its own: its commands, and its state in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/report/remaining.h"
#include "frontend/report/run.h"
#include "frontend/train/config.h"
#include "program/commands.h"

namespace keel::cli {

enum class TrialState { kWaiting, kRunning, kFinished, kFailed, kInterrupted };

// One training with one seed.
struct Trial {
  std::string name;  // "adanorm on mnist, seed 1"
  std::int64_t seed = 0;
  std::string run;                         // trainings of one run take equally long
  std::string data;                        // the folder or file that it reads; "": built-in data
  std::filesystem::path folder;            // where it is trained
  std::vector<std::string> start, resume;  // arguments for keel
  report::Settings settings;               // the recipe in full, and the backend
  report::Settings defaults;               // what a run that lacks a setting had
  report::Length length;
  TrialState state = TrialState::kWaiting;
  std::string mark, reason;  // of a failed one: "diverged", and its message
};

// The data that settings name; "" for built-in data.
std::string data_in(const report::Settings& settings);

// Every setting of a run but its table [run], and the backend.
report::Settings settings_of(const train::Config& config, const RunArgs& run);

// Gives a trial the commands that start and resume it in its folder with these arguments, and with
// a seed unless that is empty.
void set_commands(Trial& trial, const RunArgs& run, const std::string& seed);
// Gives it the settings of a recipe.
void set_recipe(Trial& trial, const train::Config& config, const RunArgs& run);

// Whether two settings are the same training: data may have moved since a run began.
bool is_same_setting(const std::string& key, const std::string& in_run, const std::string& asked);

// Reads the state of a trial from its folder: finished, failed before, or waiting to start or to go
// on. Throws as report::read_run, and Error{kUsage} naming the first setting that differs.
void look_into_folder(Trial& trial);

// "finished", "to do", "diverged".
std::string state_text(const Trial& trial);

// Threads for each of several trainings at once, unless they are given.
int threads_of_each(int jobs, int given);
// Adds the options that choose the backend, as far as they are given.
void append_backend(std::vector<std::string>& words, const RunArgs& run);
// The command for a shell.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace keel::cli
