// The state of a trial in its folder, and the text of its command.
#include <filesystem>

#include "frontend/train/run_log.h"
#include "program/reproduce_plan.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

const std::string kSourceKey = "data.source", kBuiltinSource = "builtin",
                  kTestKey = "train.test_every";

// Data may have moved since a run began, but not from a folder into the program. How often a run is
// tested on the way changes none of its numbers.
bool is_same(const std::string& key, const std::string& a, const std::string& b) {
  return a == b || key == kTestKey ||
         (key == kSourceKey && a != kBuiltinSource && b != kBuiltinSource);
}

// A run from before a setting existed had its default.
void expect_same_settings(const Trial& trial) {
  const report::Settings held = report::read_config(trial.folder);
  for (const auto& [key, expected] : trial.settings) {
    const auto in_run = held.find(key), by_default = trial.defaults.find(key);
    if (in_run == held.end() && by_default == trial.defaults.end()) continue;
    const std::string& value = in_run == held.end() ? by_default->second : in_run->second;
    check(is_same(key, value, expected), ErrorKind::kUsage,
          "{}: this folder holds a run with {} = {}, here it is {}; give another --out",
          trial.folder.string(), key, value, expected);
  }
}

bool needs_quotes(const std::string& word) {
  return word.empty() || word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
                             "YZ0123456789_-+=./:,@%") != std::string::npos;
}

}  // namespace

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
