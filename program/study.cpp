// keel study
#include "studies/study.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/backends.h"
#include "frontend/io/atomic_file.h"
#include "frontend/io/chart_formats.h"
#include "frontend/io/plot_text.h"
#include "frontend/report/styles.h"
#include "frontend/report/table.h"
#include "program/common.h"
#include "program/outputs.h"
#include "src/core/nearest.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

// A number where all of the cell is one.
Json to_json(const std::string& cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole && std::isfinite(value) ? Json(value) : Json(cell);
}

Json to_json(const study::Table& table) {
  Json rows = Json::array();
  const std::vector<std::string>& names = table.rows.front();
  for (std::size_t i = 1; i < table.rows.size(); ++i) {
    Json& row = rows.emplace_back(Json::object());
    for (std::size_t j = 0; j < names.size(); ++j) row[names[j]] = to_json(table.rows[i][j]);
  }
  return {{"title", table.title}, {"rows", rows}};
}

Json to_json(const study::Study& study, const study::Result& result) {
  Json tables = Json::array(), checks = Json::array();
  for (const study::Table& t : result.tables) tables.push_back(to_json(t));
  for (const study::Check& c : result.checks) {
    checks.push_back({{"claim", c.claim}, {"measured", c.measured}, {"bound", c.bound}});
    checks.back()["holds"] = c.judged ? Json(c.holds) : Json(nullptr);
    checks.back()["seeds"] = c.seeds;
    checks.back()["standing"] = choice_text(study::standing_of(c, study.exact));
  }
  return {{"study", study.name},
          {"source", study.source},
          {"tables", tables},
          {"checks", checks},
          {"paragraph", study::paragraph_of(study, result)},
          {"holds", result.holds()}};
}

std::string mark_of(const study::Check& check) {
  if (!check.judged) return "not judged";
  return check.holds ? "ok" : "FAILED";
}

// At most kRows of the rows; --json has them all.
std::string shortened(const study::Table& table) {
  constexpr std::ptrdiff_t kRows = 60;
  const std::ptrdiff_t skipped = std::ssize(table.rows) - 1 - kRows;
  if (skipped <= 0) return table_text(table.rows);
  const std::vector<std::vector<std::string>> first(table.rows.begin(),
                                                    table.rows.begin() + 1 + kRows);
  return fmt::format("{}... and {} rows more, with --json\n", table_text(first), skipped);
}

std::string text(const study::Study& study, const study::Result& result) {
  std::string out = fmt::format("{}: {} ({})\n", study.name, study.about, study.source);
  for (const study::Table& t : result.tables) {
    out += fmt::format("\n{}\n{}", t.title, shortened(t));
  }
  std::vector<std::vector<std::string>> rows{{"", "claim", "measured", "bound"}};
  for (const study::Check& c : result.checks) {
    rows.push_back({mark_of(c), c.claim, fmt::format("{:.4g}", c.measured), c.bound});
  }
  constexpr std::size_t kColumns = 100;
  return fmt::format("{}\n{}\n{}\n", out, table_text(rows),
                     fmt::join(io::wrapped(study::paragraph_of(study, result), kColumns), "\n"));
}

// A default that an exact study does not follow must be a backend all the same.
void check_default_backend() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : known_backends()) names.push_back(entry.name);
  const std::string name = default_backend();
  check(std::ranges::count(names, name) == 1, ErrorKind::kUsage, "backend: {}",
        unknown_name(name, names));
}

// Exact studies, and some others, are judged in float64.
std::unique_ptr<Backend> choose_backend(const study::Study& chosen, const StudyArgs& args) {
  if (!chosen.exact && !chosen.in_float64) return make_backend(args.run);
  check(args.run.backend.empty() || args.run.backend == "reference", ErrorKind::kUsage,
        "[{}] --backend: expected reference, got {}", chosen.name, args.run.backend);
  check_default_backend();
  check(args.seeds <= 1 || !chosen.exact, ErrorKind::kUsage,
        "[{}] --seeds: expected 0 or 1, got {}", chosen.name, args.seeds);
  return keel::make_backend("reference");
}

// Options that only a study of a task takes.
void check_task_options(const study::Study& chosen, const StudyArgs& args) {
  const std::pair<const char*, bool> given[] = {
      {"--task", !args.run.model.empty()},    {"--norm", !args.norms.empty()},
      {"--recipe", !args.run.recipe.empty()}, {"--data", !args.run.data.empty()},
      {"--steps", args.steps != 0},           {"--site", !args.site.empty()},
      {"--set", !args.run.sets.empty()}};
  check(chosen.takes_runs || args.runs.empty(), ErrorKind::kUsage,
        "[{}] --run: this study looks at no runs", chosen.name);
  check(chosen.name == "transfer" || args.vectors.empty(), ErrorKind::kUsage,
        "[{}] --vectors: this study looks at no words", chosen.name);
  const bool looks_at_runs = chosen.name != "transfer" && !args.runs.empty();
  for (const char* name : {"--task", "--recipe", "--norm", "--data", "--steps"}) {
    const bool is_given = std::ranges::any_of(given, [&](const auto& option) {
      return option.first == std::string(name) && option.second;
    });
    check(!looks_at_runs || !is_given, ErrorKind::kUsage,
          "[{}] {}: expected none beside --run, for the runs have been trained", chosen.name, name);
  }
  for (const auto& [name, is_given] : given) {
    check(chosen.takes_task || !is_given, ErrorKind::kUsage, "[{}] {}: this study takes no task",
          chosen.name, name);
  }
}

study::Options options_of(const StudyArgs& args, Backend& backend) {
  study::Options options{backend, seed_of(args.seed), args.seeds, args.steps};
  options.task = args.run.model;
  options.recipe = args.run.recipe;
  options.norms = args.norms;
  options.data = args.run.data;
  options.site = args.site;
  options.quiet = false;
  for (const std::string& text : args.run.sets) options.settings.push_back(setting_of(text));
  if (!args.vectors.empty()) options.settings.emplace_back("model.vectors", args.vectors);
  for (const std::string& run : args.runs) options.runs.push_back(checkpoint_path(run).string());
  return options;
}

// The plot of a file that stands alone: its title, with the study that drew it, is the caption.
io::Plot captioned(const study::Study& chosen, io::Plot plot) {
  plot.caption = std::exchange(plot.title, "");
  if (plot.caption.empty()) plot.caption = plot.y_label;
  plot.caption[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(plot.caption[0])));
  plot.caption += fmt::format(" (keel study {})", chosen.name);
  plot.about = plot.caption;
  report::set_norm_styles(plot);
  return plot;
}

// STUDY-1.csv, ... of the tables, and the plots by their names.
void write_files(const study::Study& chosen, const study::Result& result,
                 const std::filesystem::path& folder, const io::ChartFormats& formats) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: {}", folder.string(), error.message());
  int number = 0;
  for (const study::Table& table : result.tables) {
    const std::string path = folder / fmt::format("{}-{}.csv", chosen.name, ++number);
    expect_apart({{"--output", path}});
    io::write_file_atomically(path, report::csv_text(table.rows));
  }
  for (const study::Drawing& drawing : result.drawings) {
    const std::string path = folder / (drawing.name + ".svg");
    expect_apart({{"--output", path}});
    io::write_plot(path, captioned(chosen, drawing.plot));
    io::write_formats(path, formats);
  }
}

}  // namespace

int run_study(const StudyArgs& args) {
  const study::Study& chosen = study::find_study(args.name);
  check(args.seeds >= 0, ErrorKind::kUsage, "--seeds: expected 0 or more, got {}", args.seeds);
  check(args.steps >= 0, ErrorKind::kUsage, "--steps: expected 0 or more, got {}", args.steps);
  check_task_options(chosen, args);
  io::expect_converter(args.formats);
  const auto backend = choose_backend(chosen, args);
  const study::Result result = chosen.run(options_of(args, *backend));
  if (!args.output.empty()) write_files(chosen, result, args.output, args.formats);
  if (args.run.json) {
    print_json(to_json(chosen, result));
  } else {
    print(text(chosen, result));
  }
  return result.holds() ? 0 : 1;
}

}  // namespace keel::cli
