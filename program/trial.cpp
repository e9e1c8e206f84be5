#include "program/trial.h"

#include <filesystem>
#include <thread>

#include "backends/backends.h"
#include "frontend/train/run_log.h"
#include "program/common.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

const std::string kSourceKey = "data.source", kBuiltinSource = "builtin",
                  kTestKey = "train.test_every", kComputeKey = "train.compute";

// A run from before a setting existed had its default.
void expect_same_settings(const Trial& trial) {
  const report::Settings held = report::read_config(trial.folder);
  for (const auto& [key, expected] : trial.settings) {
    const auto in_run = held.find(key), by_default = trial.defaults.find(key);
    if (in_run == held.end() && by_default == trial.defaults.end()) continue;
    const std::string& value = in_run == held.end() ? by_default->second : in_run->second;
    check(is_same_setting(key, value, expected), ErrorKind::kUsage,
          "{}: this folder holds a run with {} = {}, here it is {}; give another --out",
          trial.folder.string(), key, value, expected);
  }
}

bool needs_quotes(const std::string& word) {
  return word.empty() || word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
                             "YZ0123456789_-+=./:,@%") != std::string::npos;
}

std::vector<std::string> start_words(const RunArgs& run, const std::string& seed,
                                     const std::string& folder) {
  std::vector<std::string> words{"train", run.model, "--recipe", run.recipe};
  const auto append = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  append("--norm", run.norm);
  append("--compute", run.compute);
  append("--data", run.data);
  for (const std::string& set : run.sets) append("--set", set);
  append("--seed", seed);
  append("--out", folder);
  append_backend(words, run);
  return words;
}

std::vector<std::string> resume_words(const RunArgs& run, const std::string& folder) {
  std::vector<std::string> words{"train", "--resume", folder};
  if (!run.data.empty()) words.insert(words.end(), {"--data", run.data});
  append_backend(words, run);
  return words;
}

}  // namespace

std::string data_in(const report::Settings& settings) {
  const auto source = settings.find(kSourceKey);
  return source == settings.end() || source->second == kBuiltinSource ? "" : source->second;
}

report::Settings settings_of(const train::Config& config, const RunArgs& run) {
  report::Settings settings;
  for (const auto& [key, value] : train::read_settings(config.to_toml(), "recipe")) {
    if (!key.starts_with("run.")) settings[key] = value;
  }
  settings["run.backend"] = run.backend.empty() ? default_backend() : run.backend;
  return settings;
}

void set_commands(Trial& trial, const RunArgs& run, const std::string& seed) {
  trial.start = start_words(run, seed, trial.folder);
  trial.resume = resume_words(run, trial.folder);
}

void set_recipe(Trial& trial, const train::Config& config, const RunArgs& run) {
  trial.settings = settings_of(config, run);
  trial.data = data_in(trial.settings);
  trial.defaults = settings_of(train::Config(make_task(run.model)), run);
  trial.length = {static_cast<double>(config.train().epochs),
                  static_cast<double>(config.train().max_steps)};
}

// Data do not move from a folder into the program. How often a run is tested on the way changes
// none of its numbers. A run by the type that is faster here names that type.
bool is_same_setting(const std::string& key, const std::string& in_run, const std::string& asked) {
  return in_run == asked || key == kTestKey || (key == kComputeKey && asked == "auto") ||
         (key == kSourceKey && in_run != kBuiltinSource && asked != kBuiltinSource);
}

void look_into_folder(Trial& trial) {
  if (!std::filesystem::exists(train::RunFolder{trial.folder}.config())) return;
  expect_same_settings(trial);
  const report::Run run = report::read_run(trial.folder);
  if (run.outcome == report::Outcome::kFinished) trial.state = TrialState::kFinished;
  if (run.outcome != report::Outcome::kDiverged) return;
  trial.state = TrialState::kFailed;
  trial.mark = "diverged";
  trial.reason = run.message;
}

std::string state_text(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kWaiting:
      return "to do";
    case TrialState::kRunning:
      return "running";
    case TrialState::kFinished:
      return "finished";
    case TrialState::kFailed:
    case TrialState::kInterrupted:
      return trial.mark;
  }
  return "?";
}

int threads_of_each(int jobs, int given) {
  if (jobs == 1 || given != 0) return given;
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, all / jobs);
}

void append_backend(std::vector<std::string>& words, const RunArgs& run) {
  if (!run.backend.empty()) words.insert(words.end(), {"--backend", run.backend});
  if (run.threads != 0) words.insert(words.end(), {"--threads", fmt::format("{}", run.threads)});
  if (run.device) words.insert(words.end(), {"--device", fmt::format("{}", *run.device)});
  if (run.tf32) words.emplace_back("--tf32");
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string command = "keel";
  for (const std::string& word : words) {
    if (!needs_quotes(word)) {
      command += " " + word;
      continue;
    }
    command += " '";
    for (const char c : word) command += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
    command += "'";
  }
  return command;
}

}  // namespace keel::cli
