// keel compare
#include "program/compare.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/compare/verdicts/comparison_page.h"
#include "frontend/compare/walk/tensor_dump.h"
#include "frontend/io/atomic_file.h"
#include "frontend/io/npz.h"
#include "program/common.h"
#include "program/outputs.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Compared {
  ComparedBackends backends;
  ComparedSubjects subjects;
  std::vector<compare::Comparison> results;

  bool agree() const {
    return std::ranges::all_of(results, [](const auto& c) { return c.agrees(); });
  }
  bool complete() const {
    return std::ranges::all_of(results, [](const auto& c) { return c.complete(); });
  }
};

compare::CompareOptions compare_options(const CompareArgs& args) {
  compare::CompareOptions options;
  options.walk.mode = parse_choice<compare::WalkMode>(args.mode);
  options.walk.only = args.only;
  for (const std::string& text : args.faults) {
    options.walk.faults.push_back(compare::Fault::parse(text));
  }
  options.steps = args.node_steps;
  return options;
}

// The facts that identify a trace; a trace with other facts is neither continued nor compared with.
compare::TraceFacts trace_facts(const Compared& compared) {
  std::vector<std::string> names;
  for (const auto& backend : compared.backends.others) names.emplace_back(backend->name());
  const auto& subject = compared.subjects.all[0];
  return {{"subject", subject->name()},
          {"graph", compare::graph_mark(*subject->at(0).graph)},
          {"backends", fmt::format("{}", fmt::join(names, ","))},
          {"reference", compared.backends.reference->description()}};
}

// The traces that a walk is written to or compared with.
struct Traces {
  std::optional<compare::TraceWriter> writer;
  std::optional<compare::TraceReader> reader;
  std::optional<compare::ExternalValues> external;

  Traces(const CompareArgs& args, const Compared& compared) {
    if (args.record.empty() && args.against.empty()) return;
    check(compared.subjects.all.size() == 1, ErrorKind::kUsage,
          "a trace is of one subject, got {} (of a norm --case chooses one)",
          compared.subjects.all.size());
    const compare::TraceFacts facts = trace_facts(compared);
    if (!args.record.empty()) writer.emplace(args.record, facts);
    if (args.against.empty()) return;
    if (args.against.ends_with(".npz")) {
      external.emplace(std::filesystem::path(args.against).filename(), io::read_npz(args.against));
      return;
    }
    reader.emplace(args.against);
    for (const char* name : {"subject", "graph"}) {
      const auto found = reader->facts().find(name);
      check(found != reader->facts().end() && found->second == facts.at(name), ErrorKind::kBadInput,
            "{}: {}: expected '{}' of this command, got '{}'", args.against, name, facts.at(name),
            found == reader->facts().end() ? "" : found->second);
    }
  }
};

void run_all(const CompareArgs& args, Compared& compared) {
  Traces traces(args, compared);
  for (const auto& subject : compared.subjects.all) {
    compare::CompareOptions options = compare_options(args);
    if (traces.writer) options.walk.record = &*traces.writer;
    if (traces.reader) options.walk.against = &*traces.reader;
    if (traces.external) options.walk.external = &*traces.external;
    if (traces.writer) options.steps -= traces.writer->steps();
    if (!args.dump.empty()) options.sink = compare::dump_of_divergences(args.dump);
    compared.results.push_back(
        compare::compare(*compared.backends.reference, compared.backends.all(), *subject, options));
  }
}

void show(const CompareArgs& args, const Compared& compared) {
  std::vector<std::string> descriptions;
  for (const auto& backend : compared.backends.others) {
    descriptions.push_back(fmt::format("{}: {}", backend->name(), backend->description()));
  }
  if (args.run.json) {
    Json subjects = Json::array();
    for (std::size_t i = 0; i < compared.results.size(); ++i) {
      subjects.push_back(to_json(compared.results[i], args, compared.subjects.arguments[i]));
    }
    return print_json({{"reference", compared.backends.reference->description()},
                       {"backends", descriptions},
                       {"mode", args.mode},
                       {"agrees", agreement(compared.agree(), compared.complete())},
                       {"verdict", compare::verdict_text(compared.results)},
                       {"subjects", subjects}});
  }
  std::string text;
  for (const std::string& description : descriptions) text += keel::shown(description) + "\n";
  print(text + comparison_text(args, compared.results, compared.subjects.arguments));
}

// Prints the name of every array of a step, its type, and what it is computed from.
int show_names(const CompareArgs& args, const Compared& compared) {
  check(compared.subjects.all.size() == 1, ErrorKind::kUsage,
        "--names: expected one subject, got {}", compared.subjects.all.size());
  const compare::SubjectStep step = compared.subjects.all[0]->at(0);
  std::vector<std::vector<std::string>> rows{{"array", "type", "of", "made of"}};
  Json all = Json::array();
  for (const compare::ArrayFacts& a : compare::array_facts(*step.graph)) {
    rows.push_back({a.name, a.type, a.kind, fmt::format("{}", fmt::join(a.inputs, ", "))});
    all.push_back({{"name", a.name}, {"type", a.type}, {"of", a.kind}, {"inputs", a.inputs}});
  }
  if (args.run.json) {
    print_json({{"subject", compared.subjects.all[0]->name()}, {"arrays", all}});
  } else {
    print(table_text(rows));
  }
  return 0;
}

compare::CommandOf command_of(const CompareArgs& args, const Compared& compared) {
  return [&args, &compared](const std::string& subject, const std::string& path) {
    for (std::size_t i = 0; i < compared.results.size(); ++i) {
      if (compared.results[i].subject != subject) continue;
      return reproducing_command(args, compared.subjects.arguments[i], path);
    }
    return std::string();
  };
}

void write_files(const CompareArgs& args, const Compared& compared) {
  if (!args.start.empty()) {
    check(compared.subjects.all.size() == 1, ErrorKind::kUsage,
          "--export: expected one subject, got {} (of a norm --case chooses one)",
          compared.subjects.all.size());
    io::write_file_atomically(args.start,
                              io::npz_bytes(compare::start_arrays(*compared.subjects.all[0])));
  }
  const compare::CommandOf commands = command_of(args, compared);
  if (!args.junit.empty()) {
    io::write_file_atomically(args.junit, compare::junit_text(compared.results, commands));
  }
  if (!args.html.empty()) {
    io::write_file_atomically(args.html, compare::comparison_page(compared.results, commands));
  }
}

}  // namespace

int run_compare(CompareArgs args) {
  expect_apart({{"--junit", args.junit},
                {"--html", args.html},
                {"--export", args.start},
                {"--svg", args.svg}},
               {args.against});
  if (args.steps > 0) return run_compare_training(args);
  Compared compared{compared_backends(args), {}, {}};
  compared.subjects = compared_subjects(args, compared.backends);
  if (args.names) return show_names(args, compared);
  run_all(args, compared);
  write_files(args, compared);
  show(args, compared);
  return compared.agree() && (!args.strict || compared.complete()) ? 0 : 1;
}

}  // namespace keel::cli
