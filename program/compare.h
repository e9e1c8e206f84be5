// Shared parts of `keel compare`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "frontend/compare/verdicts/comparison.h"
#include "frontend/train/job.h"
#include "program/commands.h"

namespace keel::cli {

// The backends to compare, each with the reference.
struct ComparedBackends {
  std::unique_ptr<Backend> reference;
  std::vector<std::unique_ptr<Backend>> others;

  std::vector<Backend*> all() const;
};
// The backends of CompareArgs::backends, or all of this build that run here. Throws Error{kUsage}
// unless there is one besides the reference.
ComparedBackends compared_backends(const CompareArgs& args);

// The subjects to compare: a model's step, or the named norms and ops.
struct ComparedSubjects {
  std::unique_ptr<train::Job> job;  // of a model
  std::vector<std::unique_ptr<compare::Subject>> all;
  // The words that name each of them on the command line, quoted for a shell.
  std::vector<std::string> arguments;
};
ComparedSubjects compared_subjects(const CompareArgs& args, const ComparedBackends& backends);

// Follows args.steps steps of training.
int run_compare_training(const CompareArgs& args);

// The command that compares one node of a subject alone, in the way of this command.
std::string reproducing_command(const CompareArgs& args, const std::string& subject,
                                const std::string& path);

// The results in words: the nodes that decide, those of the subject's own norm or op before others,
// and a last sentence with the verdict. `arguments` name each subject on the command line.
std::string comparison_text(const CompareArgs& args,
                            std::span<const compare::Comparison> comparisons,
                            std::span<const std::string> arguments);

// true, false, or null if nothing was found but not everything was compared.
nlohmann::ordered_json agreement(bool agrees, bool complete);
nlohmann::ordered_json to_json(const compare::NodeReport& report, const std::string& command);
nlohmann::ordered_json to_json(const compare::Comparison& comparison, const CompareArgs& args,
                               const std::string& subject);

}  // namespace keel::cli
