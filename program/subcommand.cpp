#include "program/subcommand.h"

#include "backends/backends.h"

namespace keel::cli {
namespace {

// For options whose empty value would read as not given.
std::string is_not_empty(const std::string& value) {
  return value.empty() ? "expected a value, got ''" : "";
}

}  // namespace

void add_backend(CLI::App& app, RunArgs& args) {
  app.add_option("--backend", args.backend, "onednn, cuda, reference or null (keel list backends)")
      ->default_str(default_backend());
  app.add_flag("--tf32", args.tf32, "cuda: products may round their factors to 10 bits");
  app.add_flag("--json", args.json, "machine-readable output on stdout");
}

void add_backend_options(CLI::App& app, RunArgs& args) {
  add_backend(app, args);
  app.add_option("--threads", args.threads, "threads of the backend; 0: all")
      ->check(kThreads)
      ->default_str("0");
}

CLI::Option* add_run_options(CLI::App& app, RunArgs& args, const std::string& default_recipe) {
  args.recipe = default_recipe;
  CLI::Option* model = app.add_option("model", args.model, "the model (see keel list models)");
  app.add_option("--recipe", args.recipe, "a recipe of the model, or the path of a .toml file")
      ->default_str(default_recipe);
  app.add_option("--data", args.data, "builtin, or a folder with the real data");
  app.add_option("--norm", args.norm, "shorthand for --set model.norm=...")->check(is_not_empty);
  app.add_option("--set", args.sets, "override a value of the recipe: section.key=value")
      ->type_name("KEY=VALUE");
  add_backend_options(app, args);
  return model;
}

void add_choice(CLI::App& app, const std::string& name, std::string& value,
                const std::vector<std::string>& choices, const std::string& about) {
  app.add_option(name, value, about)->check(CLI::IsMember(choices))->capture_default_str();
}

}  // namespace keel::cli
