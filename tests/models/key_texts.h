// A job in texts, to find out whether a key changes anything.
#pragma once

#include <map>
#include <optional>

#include "tests/models/every_task.h"

namespace keel::models {

// The things that a key may change, the cheapest first.
enum class Shown {
  kAssets,    // of the network
  kStep,      // the graph of a training step
  kEvaluate,  // the graph of an evaluation
  kTrain,     // the rows of training
  kValid,     // those of the validation, and how many answers are searched for them
  kTest,      // those of the test
  kKeptTest,  // those of the test as an evaluation of a checkpoint reads them
  kAnswers,   // what a checkpoint answers to lines of a user
  kScores,    // what a checkpoint measures on the test
};
std::string_view name_of(Shown shown);

// The texts of a task with settings, each made when it is first asked for. The weights of a
// checkpoint are first ones, because no text depends on training.
class JobTexts {
 public:
  JobTexts(std::string task, Settings settings);

  const std::string& of(Shown shown);
  // The texts with one more setting, but of the same checkpoint.
  JobTexts with(const std::string& setting);

 private:
  const task::Assets& assets();
  std::string made(Shown shown);
  const train::Job& job();
  const train::Job& kept();
  task::Sizes sizes();
  std::string answers();
  std::string scores();

  std::string task_;
  Settings settings_;
  std::optional<task::Assets> assets_;  // of the checkpoint
  std::optional<train::Job> job_, kept_;
  std::map<Shown, std::string> texts_;
};

}  // namespace keel::models
