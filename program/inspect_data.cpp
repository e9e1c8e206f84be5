// keel inspect data
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/io/idx.h"
#include "frontend/io/packed_file.h"
#include "models/registry.h"
#include "program/common.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

enum class State {
  kFound,
  kBroken,   // the files are there, but something in them is wrong
  kMissing,  // or some of them are
};

// The result of a task's search in a folder for its data in one of their forms.
struct Finding {
  std::string task;
  std::string options;  // with which `keel train` takes the data: "--recipe paper"
  State state = State::kMissing;
  std::array<std::int64_t, 3> rows{};    // of train, valid and test
  std::array<std::string, 3> sources{};  // likewise
  std::string reason;                    // why nothing was found
};

// The recipe that `keel train` takes if nobody names one.
constexpr std::string_view kUsualRecipe = "laptop";

bool has_form(const models::ModelEntry& task, const models::Recipe& recipe,
              const task::OptionValues& form) {
  train::Config config(task.make());
  config.apply_toml(recipe.toml, recipe.name);
  const task::OptionValues options = config.task().options();
  return std::ranges::all_of(form, [&](const auto& option) {
    return std::ranges::find(options, option) != options.end();
  });
}

// A recipe that looks for data in that form, the usual one rather than others, or else settings.
std::string options_for(const models::ModelEntry& task, const task::OptionValues& form) {
  std::string named;
  for (const models::Recipe& recipe : task.recipes) {
    if (!has_form(task, recipe, form)) continue;
    if (recipe.name == kUsualRecipe) return "";
    if (named.empty()) named = " --recipe " + recipe.name;
  }
  if (!named.empty()) return named;
  for (const auto& [name, value] : form) named += fmt::format(" --set model.{}={}", name, value);
  return named;
}

// Messages begin with who says something and of which folder, which is known here.
std::string without_place(std::string_view message, const std::string& task,
                          const std::string& folder) {
  for (const std::string& known :
       {fmt::format("[{}] ", task), std::string("[mnist] "), std::string("[pictures] "),
        std::string("[cifar10] "), fmt::format("{}: ", folder)}) {
    if (message.starts_with(known)) message.remove_prefix(known.size());
  }
  return std::string(message);
}

void look(Finding& finding, const train::Job& job) {
  for (const task::Split split : {task::Split::kTrain, task::Split::kValid, task::Split::kTest}) {
    const auto stream = job.splits().stream(split, {.batch = job.train().batch});
    finding.rows[std::size_t(split)] = stream->rows();
    finding.sources[std::size_t(split)] = stream->source();
  }
  finding.state = State::kFound;
}

Finding finding_of(const models::ModelEntry& task, const task::OptionValues& form,
                   const std::string& folder) {
  Finding finding{.task = task.name, .options = options_for(task, form), .reason = {}};
  train::Config config(task.make());
  config.set("data.source", folder);
  for (const auto& [name, value] : form) config.set("model." + name, value);
  try {
    look(finding, train::Job(std::move(config)));
  } catch (const Error& error) {
    const bool is_missing = error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kUsage;
    finding.state = is_missing ? State::kMissing : State::kBroken;
    finding.reason = without_place(error.what(), task.name, folder);
  }
  return finding;
}

// One miss of all forms is enough: the first that comes near, otherwise the first.
Finding nearest_miss(const std::vector<Finding>& misses) {
  const auto is_near = [](const Finding& miss) {
    return miss.reason.find("(found ") != miss.reason.npos;
  };
  const auto near = std::ranges::find_if(misses, is_near);
  return near == misses.end() ? misses.front() : *near;
}

// Whether a file may be a task's data by the ending of its name, before .gz or .xz.
bool has_text_ending(std::filesystem::path file) {
  constexpr std::array<std::string_view, 10> kEndings = {
      ".txt", ".tsv", ".csv", ".jsonl", ".conll", ".conllu", ".conllx", ".dp", ".question", ".tar"};
  if (file.extension() == ".gz" || file.extension() == ".xz") file = file.stem();
  return std::ranges::find(kEndings, file.extension().string()) != kEndings.end();
}

// The data that are there in one of the forms; otherwise the data that are wrong, otherwise the
// reason why nothing is there.
std::vector<Finding> findings_of(const models::ModelEntry& task, const std::string& folder) {
  std::array<std::vector<Finding>, 3> by_state;
  for (const task::OptionValues& form : task.make()->data_forms(folder)) {
    Finding finding = finding_of(task, form, folder);
    by_state[std::size_t(finding.state)].push_back(std::move(finding));
  }
  const auto& [found, broken, missing] = by_state;
  if (!found.empty()) return found;
  if (!broken.empty()) return broken;
  return missing.empty() ? missing : std::vector{nearest_miss(missing)};
}

// A command that can be pasted as it is printed.
std::string command_of(const Finding& finding, const std::string& source) {
  return fmt::format("{} train {}{} --data {}", program_called(), finding.task, finding.options,
                     shell_quoted(source));
}

std::string text_of(const Finding& f, const std::string& source) {
  switch (f.state) {
    case State::kFound:
      return fmt::format("{}: {} rows to train on, {} for validation, {} for testing, from {}: {}",
                         f.task, f.rows[0], f.rows[1], f.rows[2], f.sources[0],
                         command_of(f, source));
    case State::kBroken:
      return fmt::format("{}: there, but wrong ({}): {}", f.task, command_of(f, source), f.reason);
    case State::kMissing:
      return fmt::format("{}: not there: {}", f.task, f.reason);
  }
  return "";
}

Json json_of(const Finding& f, const std::string& source) {
  constexpr std::array<const char*, 3> kStates = {"found", "broken", "missing"};
  Json json{{"task", f.task}, {"state", kStates[std::size_t(f.state)]}};
  if (f.state != State::kMissing) json["command"] = command_of(f, source);
  if (f.state != State::kFound) {
    json["reason"] = f.reason;
    return json;
  }
  constexpr std::array<const char*, 3> kSplits = {"train", "valid", "test"};
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    json[kSplits[i]] = {{"rows", f.rows[i]}, {"source", f.sources[i]}};
  }
  return json;
}

int describe_source(const FileArgs& args) {
  Json json = Json::array();
  bool any = false;
  const bool is_folder = std::filesystem::is_directory(args.path);
  for (const models::ModelEntry& task : models::all_models()) {
    for (const Finding& finding : findings_of(task, args.path)) {
      any = any || finding.state == State::kFound;
      if (!is_folder && finding.state != State::kFound) continue;  // a file is of few tasks
      if (args.json) {
        json.push_back(json_of(finding, args.path));
      } else {
        print(shown(text_of(finding, args.path)) + "\n");
      }
    }
  }
  if (args.json) print_json(json);
  check(any, ErrorKind::kBadInput, "{}: expected data of a task, got none", args.path);
  return 0;
}

}  // namespace

// An IDX file of images or labels is told apart by its magic number; any other file may be a task's
// data.
int run_inspect_data(const FileArgs& args) {
  if (std::filesystem::is_directory(args.path)) return describe_source(args);
  const std::string bytes = io::read_file(args.path, io::kMaxImageBytes);
  const bool is_idx = bytes.starts_with(std::string_view("\0\0\x08", 3));
  if (!is_idx && has_text_ending(args.path)) return describe_source(args);
  const bool images = bytes.size() > 3 && bytes[3] == 3;
  const Tensor tensor = images ? io::read_idx_images(args.path) : io::read_idx_labels(args.path);
  const std::string text =
      fmt::format("{}: {} {}", args.path, images ? "images" : "labels", tensor.type().text());
  args.json ? print_json(Json::array({text})) : print(shown(text) + "\n");
  return 0;
}

}  // namespace keel::cli
