#include "program/subcommand.h"

#include <charconv>

#include "backends/backends.h"

namespace keel::cli {
namespace {

// An empty value would read as not given.
std::string is_not_empty(const std::string& value) {
  return value.empty() ? "expected a value, got ''" : "";
}

template <class T>
std::string is_number(const std::string& value, const char* kind) {
  T number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, problem] = std::from_chars(value.data(), end, number);
  const bool is_beyond = problem == std::errc::result_out_of_range;
  if (problem == std::errc{} && stop == end) return "";
  return fmt::format("expected {}{}, got '{}'", kind, is_beyond ? " of at most 64 bits" : "",
                     value);
}

std::string is_whole(const std::string& value) {
  return is_number<std::int64_t>(value, "a whole number");
}
std::string is_real(const std::string& value) { return is_number<double>(value, "a number"); }

}  // namespace

void add_common_checks(CLI::App& app) {
  for (CLI::Option* option : app.get_options({})) {
    const std::string type = option->get_type_name();
    const bool has_value = option->get_items_expected_max() > 0;
    if (has_value && !option->check_lname("text")) option->check(is_not_empty);
    // The parser takes the largest number it knows for one that is larger.
    if (type.starts_with("INT") || type.starts_with("UINT")) option->check(is_whole);
    if (type.starts_with("FLOAT")) option->check(is_real);
  }
  for (CLI::App* sub : app.get_subcommands({})) add_common_checks(*sub);
}

void add_gpu(CLI::App& app, RunArgs& args) {
  app.add_option("--device", args.device,
                 "cuda: the number of the GPU; default: 0, or by turns among ranks of a machine")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--tf32", args.tf32, "cuda: products may round their factors to 10 bits");
}

void add_backend(CLI::App& app, RunArgs& args) {
  app.add_option("--backend", args.backend, "onednn, cuda, reference or null (keel list backends)")
      ->default_str(default_backend());
  add_gpu(app, args);
  app.add_flag("--json", args.json, "machine-readable output on stdout");
}

void add_backend_options(CLI::App& app, RunArgs& args) {
  add_backend(app, args);
  app.add_option("--threads", args.threads, "threads of the backend; 0: all")
      ->check(kThreads)
      ->default_str("0");
}

CLI::Option* add_run_options(CLI::App& app, RunArgs& args, const std::string& default_recipe) {
  args.usual_recipe = default_recipe;
  CLI::Option* model = app.add_option("task", args.model, "a task (see keel list tasks)");
  app.add_option("--recipe", args.recipe, "a recipe of the task, or the path of a .toml file")
      ->default_str(default_recipe);
  app.add_option("--data", args.data, "builtin, or a folder with the real data");
  app.add_option("--norm", args.norm, "shorthand for --set model.norm=...");
  app.add_option("--compute", args.compute,
                 "f32, bf16 or auto, the type of the factors of a training step's products;\n"
                 "shorthand for --set train.compute=...");
  app.add_option("--set", args.sets, "override a value of the recipe: section.key=value")
      ->type_name("KEY=VALUE");
  add_backend_options(app, args);
  return model;
}

void add_choice(CLI::App& app, const std::string& name, std::string& value,
                const std::vector<std::string>& choices, const std::string& about) {
  app.add_option(name, value, about)->check(CLI::IsMember(choices))->capture_default_str();
}

void add_formats(CLI::App& app, io::ChartFormats& formats, CLI::Option* needed,
                 CLI::Option* excluded) {
  CLI::Option* pdf = app.add_flag("--pdf", formats.pdf,
                                  "also write each chart as PDF, by the program rsvg-convert");
  CLI::Option* png =
      app.add_flag("--png", formats.png, "also write each chart as PNG, by the same program");
  for (CLI::Option* option : {pdf, png}) {
    if (needed != nullptr) option->needs(needed);
    if (excluded != nullptr) option->excludes(excluded);
  }
}

}  // namespace keel::cli
