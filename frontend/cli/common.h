// What the subcommands of `keel` share: the options that describe a run, and output.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "frontend/train/config.h"
#include "src/runtime/backend.h"

namespace keel::cli {

// A subcommand adds itself to the program and sets what runs when it is chosen. The value it
// leaves in `code` is the exit code.
struct Command {
  CLI::App& app;
  int& code;
};
void add_train(Command command);
void add_eval(Command command);
void add_list(Command command);
void add_inspect(Command command);
void add_bench(Command command);

// The options that choose a model, a recipe, data and a backend.
struct RunArgs {
  std::string model, recipe, data, backend, norm;
  std::vector<std::string> sets;  // "section.key=value"
  int threads = 0;
  bool json = false;
};

void add_backend_options(CLI::App& app, RunArgs& args);
void add_run_options(CLI::App& app, RunArgs& args, const std::string& default_recipe);

// The model's recipe (a name, or a path that ends in .toml), then --data, --norm and --set.
train::Config make_config(const RunArgs& args);
std::unique_ptr<task::Model> make_model(const std::string& name);
// "section.key=value" applied to a config. Throws Error{kUsage} without an '='.
void apply_set(train::Config& config, const std::string& assignment);
std::unique_ptr<Backend> make_backend(const RunArgs& args);

// What a run's config.toml says of program and hardware.
task::OptionValues run_facts(const Backend& backend);

// Writes to stdout. Throws Error{kIo} when nobody can receive it.
void print(const std::string& text);
void print_json(const nlohmann::ordered_json& value);

// Rows of text in aligned columns, the first row being the heading.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace keel::cli
