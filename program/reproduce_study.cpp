#include "program/reproduce_study.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/backends.h"
#include "frontend/io/atomic_file.h"
#include "frontend/io/chart_formats.h"
#include "frontend/io/input_file.h"
#include "frontend/report/styles.h"
#include "frontend/train/progress.h"
#include "program/common.h"
#include "program/reproduce_choice.h"
#include "program/reproduce_plan.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void make_out(const ReproduceArgs& args) {
  std::error_code error;
  fs::create_directories(args.out, error);
  check(!error, ErrorKind::kIo, "{}: {}", args.out, error.message());
}

fs::path file_of(const ReproduceArgs& args) { return fs::path(args.out) / "study.json"; }

bool has_data(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  return figure.takes_data && !args.run.data.empty() && args.run.data != "builtin";
}

// Whether the tasks that the study takes where none is named are trained by a recipe that the user
// names, to its end.
bool has_recipe(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  return figure.takes_data && args.names_recipe;
}

// The arguments of `keel study` that do the same.
std::vector<std::string> words_of(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  const study::Study& study = study::find_study(figure.study);
  std::vector<std::string> words{"study", study.name};
  if (study.exact) return words;
  const std::vector<std::int64_t> seeds = seeds_of(args.seeds);
  words.insert(words.end(), {"--seed", fmt::format("{}", seeds.front()), "--seeds",
                             fmt::format("{}", seeds.size())});
  if (has_recipe(figure, args)) words.insert(words.end(), {"--recipe", args.run.recipe});
  if (has_data(figure, args)) words.insert(words.end(), {"--data", args.run.data});
  append_backend(words, args.run);
  return words;
}

study::Result result_of(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  const study::Study& study = study::find_study(figure.study);
  const auto backend = study.exact ? keel::make_backend("reference") : cli::make_backend(args.run);
  study::FigureRequest request{seeds_of(args.seeds)};
  if (args.names_recipe) request.recipe = args.run.recipe;
  if (has_data(figure, args)) request.data = args.run.data;
  return study.run(study::options_of(figure, request, *backend));
}

Json to_json(const io::Plot& plot) {
  Json series = Json::array();
  for (const io::PlotSeries& s : plot.series) {
    series.push_back({{"name", s.name}, {"x", s.x}, {"y", s.y}, {"low", s.low}, {"high", s.high}});
  }
  return {{"title", plot.title}, {"x_label", plot.x_label}, {"y_label", plot.y_label},
          {"log_x", plot.log_x}, {"log_y", plot.log_y},     {"series", series}};
}

// JSON has no NaN and no infinity; null stands in their place.
std::vector<double> numbers_of(const Json& json) {
  std::vector<double> numbers;
  for (const Json& value : json) numbers.push_back(value.is_null() ? NAN : value.get<double>());
  return numbers;
}

io::Plot plot_of(const Json& json) {
  io::Plot plot{.title = json.at("title"),
                .x_label = json.at("x_label"),
                .y_label = json.at("y_label"),
                .log_y = json.at("log_y"),
                .series = {}};
  plot.log_x = json.at("log_x");
  for (const Json& s : json.at("series")) {
    plot.series.push_back({s.at("name"), numbers_of(s.at("x")), numbers_of(s.at("y")),
                           numbers_of(s.at("low")), numbers_of(s.at("high"))});
  }
  return plot;
}

std::string verdict_of(const study::Check& check, bool is_exact) {
  return fmt::format("{}: {}: {:.4g}; {}.", choice_text(study::standing_of(check, is_exact)),
                     check.claim, check.measured, check.bound);
}

// A table as it is kept: with a last row of dots in place of the rows beyond so many.
Json kept_table(const study::Table& table) {
  constexpr std::size_t kMostRows = 30;
  report::Rows rows(table.rows.begin(),
                    table.rows.begin() + std::ptrdiff_t(std::min(table.rows.size(), kMostRows)));
  if (rows.size() < table.rows.size()) rows.emplace_back(rows.front().size(), "...");
  return {{"title", table.title}, {"rows", rows}};
}

// The description of a study's data on its page; "" for an exact study, which has none.
std::string study_data(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  if (study::find_study(figure.study).exact) return "";
  return has_data(figure, args) ? args.run.data : "built in; the paper's are others";
}

// The record of a study: the command that gave it, its data, its cost, its claims, tables and
// plots.
Json kept_of(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  const auto start = std::chrono::steady_clock::now();
  const study::Result result = result_of(figure, args);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  Json remarks = Json::array(), charts = Json::array(), tables = Json::array();
  for (const study::Check& check : result.checks) {
    remarks.push_back(verdict_of(check, study::find_study(figure.study).exact));
  }
  for (const study::Table& table : result.tables) tables.push_back(kept_table(table));
  for (const study::Drawing& drawing : result.drawings) {
    charts.push_back({{"name", drawing.name}, {"plot", to_json(drawing.plot)}});
  }
  return {{"command", shell_command(words_of(figure, args))},
          {"data", study_data(figure, args)},
          {"seconds", seconds.count()},
          {"remarks", remarks},
          {"tables", tables},
          {"charts", charts}};
}

report::Comparison heading_of(const study::StudiedFigure& figure) {
  const study::Study& study = study::find_study(figure.study);
  report::Comparison comparison;
  comparison.title = figure.name + ": " + study.about;
  comparison.remarks = {"Paper: " + study.source + "."};
  return comparison;
}

void add_data(const std::string& data, bool is_to_the_end, report::Comparison& comparison) {
  if (data.empty()) return;
  comparison.remarks.push_back(fmt::format(
      "Data: {}.{}", data,
      is_to_the_end ? "" : " The networks are small, and their training is cut short."));
}

void add_kept(const Json& kept, report::Comparison& comparison) {
  comparison.remarks.push_back(fmt::format("Cost: {}. Command: {}",
                                           train::duration_text(kept.at("seconds")),
                                           kept.at("command").get<std::string>()));
  for (const Json& remark : kept.at("remarks")) comparison.remarks.push_back(remark);
  for (const Json& table : kept.at("tables")) {
    comparison.tables.push_back({table.at("title"), table.at("rows").get<report::Rows>()});
  }
  for (const Json& chart : kept.at("charts")) {
    io::Plot plot = plot_of(chart.at("plot"));
    plot.about = std::exchange(plot.title, "");
    plot.about[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(plot.about[0])));
    report::set_norm_styles(plot);
    comparison.charts.push_back({chart.at("name"), plot.about, plot});
  }
}

// Returns what an earlier call wrote, or null if there is no such file or its content is damaged.
Json left_in(const fs::path& file) {
  if (!fs::exists(file)) return {};
  try {
    Json found = Json::parse(io::InputFile(file).read_all());
    report::Comparison any;
    add_kept(found, any);  // throws where a part is missing or is something else
    // An earlier version kept no data.
    found["data"] = found.value("data", "");
    return found;
  } catch (const Json::exception&) {
    return {};
  }
}

// The record that an earlier call of the same command left, or any call with --as-is; otherwise a
// new result of the study. Null: nothing is there.
Json kept_or_computed(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  Json kept = left_in(file_of(args));
  const bool is_same = !kept.is_null() && kept["command"] == shell_command(words_of(figure, args));
  if (is_same) kept["data"] = study_data(figure, args);
  if (is_same || args.as_is) return kept;
  kept = kept_of(figure, args);
  make_out(args);
  io::write_file_atomically(file_of(args), kept.dump(1) + "\n");
  return kept;
}

}  // namespace

const study::StudiedFigure* find_studied_figure(const std::string& name) {
  const auto all = study::studied_figures();
  const auto found = std::ranges::find(all, name, &study::StudiedFigure::name);
  return found == all.end() ? nullptr : &*found;
}

StudiedOutcome studied_outcome(const study::StudiedFigure& figure, const ReproduceArgs& args) {
  StudiedOutcome outcome{heading_of(figure)};
  Json kept;
  std::string why = "Not run yet. Command: " + shell_command(words_of(figure, args));
  try {
    kept = kept_or_computed(figure, args);
  } catch (const Error& error) {
    const bool is_expected = error.kind() == ErrorKind::kBadInput ||
                             error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kDiverged;
    if (!is_expected) throw;
    why = fmt::format("Not run: {}.", error.what());
  }
  if (kept.is_null()) {
    add_data(study_data(figure, args), has_recipe(figure, args), outcome.comparison);
    outcome.comparison.remarks.push_back(why);
    return outcome;
  }
  add_data(kept["data"].get<std::string>(), has_recipe(figure, args), outcome.comparison);
  add_kept(kept, outcome.comparison);
  outcome.complete = true;
  return outcome;
}

namespace {

// The page, its charts, and each table as CSV, numbered from 1.
void write_files(const fs::path& folder, const std::string& name,
                 const report::Comparison& comparison, const io::ChartFormats& formats) {
  io::write_file_atomically(folder / (name + ".md"), report::markdown_of(comparison, name));
  io::write_file_atomically(folder / (name + ".html"), report::html_of(comparison));
  for (std::size_t i = 0; i < comparison.tables.size(); ++i) {
    io::write_file_atomically(folder / fmt::format("{}-{}.csv", name, i + 1),
                              report::csv_text(comparison.tables[i].rows));
  }
  for (const report::Chart& chart : comparison.charts) {
    const fs::path svg = folder / report::chart_file(name, chart);
    io::write_plot(svg, chart.plot);
    io::write_formats(svg, formats);
  }
}

}  // namespace

int run_reproduce_study(const study::StudiedFigure& figure, ReproduceArgs args) {
  check(args.tasks.empty() && args.norms.empty() && !args.plan, ErrorKind::kUsage,
        "reproduce {}: expected no --tasks, --norms or --plan, which are of trainings",
        figure.name);
  if (!study::find_study(figure.study).exact) expect_consecutive(args.seeds);
  if (args.out.empty()) args.out = "runs/" + figure.name;
  const StudiedOutcome outcome = studied_outcome(figure, args);
  const fs::path folder = args.out;
  make_out(args);
  write_files(folder, figure.name, outcome.comparison, args.formats);
  if (args.run.json) {
    print_json(report::json_of(outcome.comparison));
  } else {
    std::string text = outcome.comparison.title + "\n";
    for (const std::string& remark : outcome.comparison.remarks) text += remark + "\n";
    print(text + fmt::format("written: {}\n", (folder / (figure.name + ".html")).string()));
  }
  return outcome.complete || args.as_is ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace keel::cli
