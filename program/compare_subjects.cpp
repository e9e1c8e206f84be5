// What `keel compare` compares, and on which backends.
#include <algorithm>

#include "backends/backends.h"
#include "frontend/compare/layer_subjects.h"
#include "frontend/compare/model_subject.h"
#include "program/common.h"
#include "program/compare.h"

namespace keel::cli {
namespace {

const std::string kJudge = "reference";

// Those of this build that run on this machine, but for the one that computes nothing.
std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : known_backends()) {
    if (!entry.missing.empty() || entry.name == kJudge || entry.name == "null") continue;
    try {
      keel::make_backend(entry.name);
      names.push_back(entry.name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kBackendMissing) throw;
    }
  }
  return names;
}

void add_layers(ComparedSubjects& subjects, const std::string& argument, compare::Subjects layers) {
  for (auto& layer : layers) {
    subjects.all.push_back(std::move(layer));
    subjects.arguments.push_back(argument);
  }
}

void add_norm_layers(ComparedSubjects& subjects, const std::string& norm, bool unfused) {
  add_layers(subjects, "norm " + norm, compare::norm_subjects(nn::Norm::parse(norm), unfused));
}

void add_op_layers(ComparedSubjects& subjects, const std::string& op, bool unfused) {
  add_layers(subjects, "op " + op, compare::op_subjects(op, unfused));
}

// Backwards come with their forwards, and norms in their variants.
void add_all_layers(ComparedSubjects& subjects, bool unfused) {
  for (const nn::NormFacts& facts : nn::norm_facts())
    add_norm_layers(subjects, facts.name, unfused);
  for (const std::string& op : compare::subject_ops()) {
    if (compare::has_own_subject(op)) add_op_layers(subjects, op, unfused);
  }
}

void add_model(ComparedSubjects& subjects, const CompareArgs& args,
               const ComparedBackends& backends) {
  check(!args.as_run || backends.others.size() == 1, ErrorKind::kUsage,
        "--as-run: expected one backend besides {}, whose graph is meant, got {}: --backends NAME",
        kJudge, backends.others.size());
  const Backend* as_run = args.as_run ? backends.others[0].get() : nullptr;
  RunArgs run = args.run;
  run.model = args.subject[0];
  subjects.config = std::make_unique<train::Config>(prepared_config(run));
  subjects.all.push_back(std::make_unique<compare::ModelSubject>(
      *backends.judge, *subjects.config, compare::ModelSubjectOptions{args.unfused, as_run}));
  subjects.arguments.push_back(run.model);
}

std::string quoted(const std::string& text) {
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-+=./,:%@") == text.npos;
  if (plain && !text.empty()) return text;
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::vector<Backend*> ComparedBackends::all() const {
  std::vector<Backend*> result;
  for (const auto& backend : others) result.push_back(backend.get());
  return result;
}

ComparedBackends compared_backends(const CompareArgs& args) {
  ComparedBackends result;
  const BackendOptions options{.threads = args.run.threads, .tf32 = args.run.tf32};
  result.judge = keel::make_backend(kJudge);
  const bool chosen = !args.backends.empty();
  for (const std::string& name : chosen ? args.backends : usable_backends()) {
    if (name == kJudge) continue;
    const bool is_new = std::ranges::none_of(
        result.others, [&](const auto& other) { return other->name() == name; });
    check(is_new, ErrorKind::kUsage, "--backends: {} is named twice", name);
    result.others.push_back(keel::make_backend(name, options));
  }
  check(!result.others.empty(), chosen ? ErrorKind::kUsage : ErrorKind::kBackendMissing,
        "--backends: expected one besides {}, which judges", kJudge);
  return result;
}

ComparedSubjects compared_subjects(const CompareArgs& args, const ComparedBackends& backends) {
  ComparedSubjects subjects;
  check(args.all_ops == args.subject.empty(), ErrorKind::kUsage,
        "compare: expected a model, op NAME, norm VARIANT or --all-ops alone");
  const bool is_model = args.subject.size() == 1;
  check(is_model || !args.as_run, ErrorKind::kUsage, "--as-run: expected a model to compare");
  if (args.all_ops) {
    add_all_layers(subjects, args.unfused);
    return subjects;
  }
  const std::string& kind = args.subject[0];
  const bool is_layer = kind == "op" || kind == "norm";
  check(args.subject.size() == (is_layer ? 2 : 1), ErrorKind::kUsage,
        "compare: expected {}, got '{}'", is_layer ? kind + " and its name" : "one model",
        fmt::join(args.subject, " "));
  if (kind == "op") {
    add_op_layers(subjects, args.subject[1], args.unfused);
  } else if (kind == "norm") {
    add_norm_layers(subjects, args.subject[1], args.unfused);
  } else {
    add_model(subjects, args, backends);
  }
  return subjects;
}

std::string reproducing_command(const CompareArgs& args, const std::string& subject,
                                const std::string& path) {
  const std::size_t space = subject.find(' ');
  std::string text = "keel compare " + subject.substr(0, space);
  if (space != subject.npos) text += " " + quoted(subject.substr(space + 1));
  const auto add = [&](const std::string& option, const std::string& value,
                       const std::string& usual) {
    if (value != usual) text += " " + option + " " + quoted(value);
  };
  add("--recipe", args.run.recipe, "laptop");
  add("--data", args.run.data, "");
  add("--norm", args.run.norm, "");
  for (const std::string& set : args.run.sets) add("--set", set, "");
  add("--threads", fmt::format("{}", args.run.threads), "0");
  if (args.run.tf32) text += " --tf32";
  add("--backends", fmt::format("{}", fmt::join(args.backends, ",")), "");
  add("--mode", args.mode, "isolated");
  add("--node-steps", fmt::format("{}", args.node_steps), "1");
  if (args.unfused) text += " --unfused";
  if (args.as_run) text += " --as-run";
  for (const std::string& fault : args.faults) add("--inject", fault, "");
  add("--only", path, "");
  return text;
}

}  // namespace keel::cli
