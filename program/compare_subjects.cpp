// The subjects and the backends of `keel compare`.
#include <algorithm>
#include <array>
#include <functional>

#include "frontend/compare/cases/layer_subjects.h"
#include "frontend/compare/walk/model_subject.h"
#include "frontend/compare/walk/walk_plan.h"
#include "program/common.h"
#include "program/compare.h"
#include "src/core/nearest.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

const std::string kJudge = "reference";

// The backends of this build that run on this machine, without the one that computes nothing, and
// why others do not.
struct UsableBackends {
  std::vector<std::string> names, refusals;
};

UsableBackends usable_backends() {
  UsableBackends usable;
  for (const BackendEntry& entry : known_backends()) {
    if (!entry.missing.empty() || entry.name == kJudge || entry.name == "null") continue;
    try {
      keel::make_backend(entry.name);
      usable.names.push_back(entry.name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kBackendMissing) throw;
      usable.refusals.push_back(error.what());
    }
  }
  return usable;
}

// The backends to make: those asked for, or all that run here.
std::vector<std::string> wanted_backends(const CompareArgs& args) {
  if (!args.backends.empty()) return args.backends;
  const UsableBackends usable = usable_backends();
  check(!usable.names.empty() || usable.refusals.empty(), ErrorKind::kBackendMissing, "{}",
        fmt::join(usable.refusals, "; "));
  return usable.names;
}

// A layer on one of its cases, and how the command line names it.
struct NamedLayer {
  std::unique_ptr<compare::GraphSubject> subject;
  std::string argument;
};

class Layers {
 public:
  explicit Layers(const compare::LayerForm& form) : form_(form) {}

  void add_norm(const std::string& norm) {
    for (const compare::LayerForm& form : forms()) {
      add("norm " + shell_quoted(norm), compare::norm_subjects(nn::Norm::parse(norm), form));
    }
  }
  void add_op(const std::string& op) {
    for (const compare::LayerForm& form : forms()) {
      add("op " + shell_quoted(op), compare::op_subjects(op, form));
    }
  }
  // Backwards come with their forwards, and norms in their variants.
  void add_all() {
    for (const nn::NormFacts& facts : nn::norm_facts()) add_norm(facts.any_width());
    for (const std::string& op : compare::subject_ops()) {
      if (compare::has_own_subject(op)) add_op(op);
    }
  }

  // Throws Error{kUsage} if no layer has anything in bf16.
  void keep_bf16() {
    std::erase_if(all_, [](const NamedLayer& l) { return !compare::has_bf16(l.subject->graph()); });
    check(!all_.empty(), ErrorKind::kUsage,
          "--compute: expected an op with products, or a norm of x, to compare in bf16");
  }
  bool has_case(const std::string& name) const { return std::ranges::count(cases(), name) > 0; }
  // Throws Error{kUsage} when no layer has a case of that name.
  void keep_case(const std::string& name) {
    const std::vector<std::string> known = cases();
    std::erase_if(all_, [&](const NamedLayer& l) { return l.subject->input_case() != name; });
    check(!all_.empty(), ErrorKind::kUsage, "--case: {}", unknown_name(name, known));
  }
  // Leaves those with a node that is called so; where none has one, the walk says that.
  void keep_called(const std::string& path) {
    const auto has = [&](const NamedLayer& l) {
      return compare::has_called(l.subject->graph(), path);
    };
    if (std::ranges::any_of(all_, has)) std::erase_if(all_, std::not_fn(has));
  }
  void move_to(ComparedSubjects& subjects) {
    for (NamedLayer& layer : all_) {
      subjects.all.push_back(std::move(layer.subject));
      subjects.arguments.push_back(std::move(layer.argument));
    }
  }

 private:
  std::array<compare::LayerForm, 2> forms() const {
    compare::LayerForm small = form_, large = form_;
    small.size = compare::CaseSize::kSmall;
    large.size = compare::CaseSize::kLarge;
    return {small, large};
  }
  std::vector<std::string> cases() const {
    std::vector<std::string> names;
    for (const NamedLayer& layer : all_) names.push_back(layer.subject->input_case());
    return names;
  }
  void add(const std::string& argument, compare::Subjects subjects) {
    for (auto& subject : subjects) {
      const std::string name = shell_quoted(subject->input_case());
      all_.push_back({std::move(subject), fmt::format("{} --case {}", argument, name)});
    }
  }

  compare::LayerForm form_;
  std::vector<NamedLayer> all_;
};

// A trace, and what another program starts with or gives, are of one case.
bool takes_one_case(const CompareArgs& args) {
  return !args.record.empty() || !args.against.empty() || !args.start.empty();
}

void add_layers(ComparedSubjects& subjects, const CompareArgs& args) {
  const std::string& compute = args.run.compute;
  check(compute.empty() || compute == "f32" || compute == "bf16", ErrorKind::kUsage,
        "--compute: of an op or a norm expected f32 or bf16, got '{}'", compute);
  const bool is_narrow = compute == "bf16";
  Layers layers({.unfused = args.unfused, .is_narrow = is_narrow});
  if (args.all_ops) {
    layers.add_all();
  } else if (args.subject[0] == "op") {
    layers.add_op(args.subject[1]);
  } else {
    layers.add_norm(args.subject[1]);
  }
  if (is_narrow) layers.keep_bf16();
  if (!args.input_case.empty()) {
    layers.keep_case(args.input_case);
  } else if (takes_one_case(args) && layers.has_case("small")) {
    layers.keep_case("small");
  }
  if (!args.only.empty()) layers.keep_called(args.only);
  layers.move_to(subjects);
}

// For a command that names backends as it names its subject.
std::string backends_hint(const std::vector<std::string>& words) {
  std::vector<std::string> named;
  for (const BackendEntry& entry : known_backends()) {
    if (std::ranges::find(words, entry.name) != words.end()) named.push_back(entry.name);
  }
  return named.empty() ? "" : fmt::format("; --backends {} names backends", fmt::join(named, ","));
}

void add_model(ComparedSubjects& subjects, const CompareArgs& args,
               const ComparedBackends& backends) {
  check(!args.as_run || backends.others.size() == 1, ErrorKind::kUsage,
        "--as-run: expected one backend besides {}, whose graph is meant, got {}: --backends NAME",
        kJudge, backends.others.size());
  const Backend* as_run = args.as_run ? backends.others[0].get() : nullptr;
  RunArgs run = args.run;
  run.model = args.subject[0];
  subjects.job = std::make_unique<train::Job>(make_job(run));
  expect_settled(*subjects.job);
  subjects.all.push_back(std::make_unique<compare::ModelSubject>(
      *backends.reference, *subjects.job, compare::ModelSubjectOptions{args.unfused, as_run}));
  subjects.arguments.push_back(shell_quoted(args.subject[0]));
}

}  // namespace

std::vector<Backend*> ComparedBackends::all() const {
  std::vector<Backend*> result;
  for (const auto& backend : others) result.push_back(backend.get());
  return result;
}

ComparedBackends compared_backends(const CompareArgs& args) {
  ComparedBackends result;
  result.reference = keel::make_backend(kJudge);
  const bool chosen = !args.backends.empty();
  const std::vector<std::string> wanted = wanted_backends(args);
  check(!args.run.device || std::ranges::find(wanted, "cuda") != wanted.end(), ErrorKind::kUsage,
        "--device: expected cuda among the backends, which are {}", fmt::join(wanted, ", "));
  for (const std::string& name : wanted) {
    if (name == kJudge) continue;
    const bool is_new = std::ranges::none_of(
        result.others, [&](const auto& other) { return other->name() == name; });
    check(is_new, ErrorKind::kUsage, "--backends: {} is named twice", name);
    BackendOptions options = backend_options(args.run);
    if (name != "cuda") options.device.reset();
    result.others.push_back(keel::make_backend(name, options));
  }
  check(!result.others.empty(), chosen ? ErrorKind::kUsage : ErrorKind::kBackendMissing,
        "--backends: expected one besides {}, which all are compared with", kJudge);
  return result;
}

ComparedSubjects compared_subjects(const CompareArgs& args, const ComparedBackends& backends) {
  ComparedSubjects subjects;
  check(args.all_ops == args.subject.empty(), ErrorKind::kUsage,
        "compare: expected a task, op NAME or norm VARIANT, or only --all-ops");
  const bool is_model = args.subject.size() == 1;
  check(is_model || !args.as_run, ErrorKind::kUsage, "--as-run: expected a task to compare");
  const std::string kind = args.all_ops ? "" : args.subject[0];
  const bool is_layer = kind == "op" || kind == "norm";
  check(args.all_ops || args.subject.size() == (is_layer ? 2 : 1), ErrorKind::kUsage,
        "compare: expected {}, got '{}'{}", is_layer ? kind + " and its name" : "one task",
        fmt::join(args.subject, " "), backends_hint(args.subject));
  check(args.all_ops || is_layer || args.input_case.empty(), ErrorKind::kUsage,
        "--case: expected op NAME, norm VARIANT or --all-ops to compare");
  if (args.all_ops || is_layer) {
    add_layers(subjects, args);
  } else {
    add_model(subjects, args, backends);
  }
  return subjects;
}

std::string reproducing_command(const CompareArgs& args, const std::string& subject,
                                const std::string& path) {
  std::string text = "keel compare " + subject;
  const auto add = [&](const std::string& option, const std::string& value,
                       const std::string& usual) {
    if (value != usual) text += " " + option + " " + shell_quoted(value);
  };
  if (!args.run.recipe.empty()) add("--recipe", args.run.recipe, args.run.usual_recipe);
  add("--data", args.run.data, "");
  add("--norm", args.run.norm, "");
  add("--compute", args.run.compute, "");
  for (const std::string& set : args.run.sets) add("--set", set, "");
  add("--threads", fmt::format("{}", args.run.threads), "0");
  if (args.run.device) add("--device", fmt::format("{}", *args.run.device), "");
  if (args.run.tf32) text += " --tf32";
  add("--backends", fmt::format("{}", fmt::join(args.backends, ",")), "");
  add("--mode", args.mode, "isolated");
  add("--node-steps", fmt::format("{}", args.node_steps), "1");
  if (args.unfused) text += " --unfused";
  if (args.as_run) text += " --as-run";
  for (const std::string& fault : args.faults) add("--inject", fault, "");
  add("--against", args.against, "");
  add("--only", path, "");
  return text;
}

}  // namespace keel::cli
