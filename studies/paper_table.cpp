#include "studies/paper_table.h"

#include <toml++/toml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "src/core/error.h"
#include "src/core/nearest.h"

namespace keel::study {
namespace {

using Json = nlohmann::json;

// The content of a file: one object, with lists for tables, columns and rows.
Json read_toml(std::string_view toml) {
  std::ostringstream json;
  json << toml::json_formatter(toml::parse(toml));
  return Json::parse(json.str());
}

void expect_known(const Json& object, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    check(std::ranges::find(known, key) != known.end(), ErrorKind::kInternal, "key {}",
          unknown_name(key, known));
  }
}

PaperColumn column_of(const Json& json) {
  expect_known(json, {"name", "title", "task", "run", "recipes", "settings", "data", "seeds",
                      "study", "split", "metric", "weights", "offset", "scale", "digits",
                      "less_is_better", "tested"});
  PaperColumn column;
  column.name = json.at("name");
  column.title = json.value("title", column.name);
  column.task = json.at("task");
  column.run = json.value("run", column.name);
  column.recipes = json.value("recipes", column.recipes);
  column.settings = json.value("settings", column.settings);
  const std::string data = json.value("data", "");
  check(data.empty() || data == "builtin", ErrorKind::kInternal,
        "column {}: data: expected builtin, got '{}'", column.name, data);
  column.is_builtin = !data.empty();
  column.seeds = json.value("seeds", column.seeds);
  column.study = json.value("study", "");
  column.split = json.value("split", "test");
  column.metric = json.value("metric", "");
  column.weights = json.value("weights", "best");
  column.offset = json.value("offset", column.offset);
  column.scale = json.value("scale", column.scale);
  column.digits = json.value("digits", column.digits);
  column.less_is_better = json.value("less_is_better", false);
  column.tested = json.value("tested", column.tested);
  check(column.recipes.empty() == column.metric.empty(), ErrorKind::kInternal,
        "column {}: expected recipes and a metric, or neither", column.name);
  return column;
}

PaperRow row_of(const Json& json) {
  expect_known(json, {"name", "norm", "values", "options", "settings"});
  PaperRow row;
  row.norm = json.at("norm");
  row.name = json.value("name", row.norm);
  row.values = json.value("values", row.values);
  row.options = json.value("options", row.options);
  row.settings = json.value("settings", row.settings);
  return row;
}

using Settings = std::vector<std::string>;

// The settings, but for keys that `own` has, and then those of `own`.
Settings merged(Settings settings, const Settings& own) {
  for (const std::string& setting : own) {
    const std::string key = setting.substr(0, setting.find('=') + 1);
    std::erase_if(settings, [&](const std::string& other) { return other.starts_with(key); });
  }
  settings.insert(settings.end(), own.begin(), own.end());
  return settings;
}

template <class T>
T named(const std::vector<T>& all, std::string T::*name, const std::string& wanted) {
  const auto found = std::ranges::find(all, wanted, name);
  check(found != all.end(), ErrorKind::kInternal, "'{}' is not in the file", wanted);
  return *found;
}

PaperTable table_of(const Json& json, const Json& file, const std::vector<PaperColumn>& columns,
                    const std::vector<PaperRow>& rows) {
  expect_known(json, {"name", "place", "about", "figure", "axis", "log_x", "rows", "columns",
                      "differences", "systems"});
  PaperTable table;
  table.name = json.at("name");
  table.source = fmt::format("{}, {}", file.at("source").get<std::string>(),
                             json.at("place").get<std::string>());
  table.about = json.at("about");
  table.is_figure = json.value("figure", false);
  const std::string axis = json.value("axis", "epochs");
  check(axis == "epochs" || axis == "updates", ErrorKind::kInternal,
        "table {}: axis: expected epochs or updates, got '{}'", table.name, axis);
  table.along_updates = axis == "updates";
  table.log_x = json.value("log_x", false);
  table.columns = columns;
  if (json.contains("columns")) {
    table.columns.clear();
    for (const std::string name : json["columns"]) {
      table.columns.push_back(named(columns, &PaperColumn::name, name));
    }
  }
  for (const std::string name : json.value("rows", Json::array())) {
    table.rows.push_back(named(rows, &PaperRow::name, name));
  }
  for (const Json& pair : json.value("differences", Json::array())) {
    PaperDifference difference{pair.at(0), pair.at(1)};
    for (const std::string& row : {difference.of, difference.over}) {
      named(table.rows, &PaperRow::name, row);
    }
    table.differences.push_back(std::move(difference));
  }
  for (const Json& system : json.value("systems", Json::array())) {
    expect_known(system, {"name", "values"});
    table.systems.push_back({system.at("name"), system.at("values")});
    for (const auto& [column, value] : table.systems.back().values) {
      named(columns, &PaperColumn::name, column);
    }
  }
  return table;
}

// Each key names a column, or a column and one of its recipes.
template <class T>
void expect_keys(const std::map<std::string, T>& by_key, const std::vector<PaperColumn>& columns,
                 const char* what) {
  for (const auto& [key, value] : by_key) {
    const std::size_t slash = key.find('/');
    const PaperColumn column = named(columns, &PaperColumn::name, key.substr(0, slash));
    check(slash == std::string::npos || column.recipes.contains(key.substr(slash + 1)),
          ErrorKind::kInternal, "{}: expected a column and one of its recipes, got '{}'", what,
          key);
  }
}

// The entry of a row for a column and one of its recipes; null: none.
template <class T>
const T* find_for(const std::map<std::string, T>& by_key, const PaperColumn& column,
                  const std::string& recipe) {
  auto found = by_key.find(column.name + "/" + recipe);
  if (found == by_key.end()) found = by_key.find(column.name);
  return found == by_key.end() ? nullptr : &found->second;
}

// The rows of tables whose names have that ending.
std::set<std::string> row_names(const Json& file, const std::string& ending) {
  std::set<std::string> names;
  for (const Json& table : file.at("table")) {
    for (const std::string name : table.value("rows", Json::array())) {
      if (name.ends_with(ending)) names.insert(name);
    }
  }
  return names;
}

// A table's row "batchnorm-unscaled" is the row "batchnorm" with the settings of the control
// "unscaled" and without the paper's values. A row of that name in the file gets the settings only.
void add_control(const Json& file, const Json& control, std::vector<PaperRow>& rows) {
  expect_known(control, {"name", "settings"});
  const std::string ending = "-" + control.at("name").get<std::string>();
  const std::set<std::string> names = row_names(file, ending);
  check(!names.empty(), ErrorKind::kInternal,
        "control {}: expected a table with a row NAME{}, got none",
        control.at("name").get<std::string>(), ending);
  for (const std::string& name : names) {
    auto row = std::ranges::find(rows, name, &PaperRow::name);
    if (row == rows.end()) {
      PaperRow made = named(rows, &PaperRow::name, name.substr(0, name.size() - ending.size()));
      made.name = name;
      made.values.clear();
      row = rows.insert(row, made);
    }
    for (const auto& [key, settings] : control.at("settings").items()) {
      row->settings[key] = merged(settings, row->settings[key]);
    }
  }
}

std::vector<PaperTable> tables_of(const Json& file) {
  expect_known(file, {"source", "table", "column", "row", "control"});
  std::vector<PaperColumn> columns;
  std::vector<PaperRow> rows;
  for (const Json& column : file.at("column")) columns.push_back(column_of(column));
  for (const Json& row : file.value("row", Json::array())) rows.push_back(row_of(row));
  for (const Json& control : file.value("control", Json::array())) add_control(file, control, rows);
  for (const PaperRow& row : rows) {
    check(std::ranges::count(rows, row.name, &PaperRow::name) == 1, ErrorKind::kInternal,
          "row {}: expected one of that name, and a name for each row of one norm", row.name);
    for (const auto& [column, value] : row.values) named(columns, &PaperColumn::name, column);
    expect_keys(row.options, columns, "options");
    expect_keys(row.settings, columns, "settings");
  }
  std::vector<PaperTable> tables;
  for (const Json& table : file.at("table")) {
    tables.push_back(table_of(table, file, columns, rows));
  }
  return tables;
}

}  // namespace

std::string norm_spec(const PaperRow& row, const PaperColumn& column, const std::string& recipe) {
  const std::string* options = find_for(row.options, column, recipe);
  return options == nullptr ? row.norm : fmt::format("{}{{{}}}", row.norm, *options);
}

std::vector<std::string> settings_for(const PaperRow& row, const PaperColumn& column,
                                      const std::string& recipe) {
  Settings settings;
  if (column.settings.contains(recipe)) settings = column.settings.at(recipe);
  const Settings* own = find_for(row.settings, column, recipe);
  return own == nullptr ? settings : merged(std::move(settings), *own);
}

std::vector<PaperTable> read_paper_tables(std::string_view toml, const std::string& where) {
  try {
    return tables_of(read_toml(toml));
  } catch (const Error& error) {
    fail(ErrorKind::kInternal, "{}: {}", where, error.what());
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::kInternal, "{}:{}: {}", where, error.source().begin.line, error.description());
  } catch (const Json::exception& error) {
    fail(ErrorKind::kInternal, "{}: {}", where, error.what());
  }
}

std::span<const PaperTable> paper_tables() {
  static const std::vector<PaperTable> all = [] {
    static const struct {
      const char *name, *toml;
    } kFiles[] = {
#include "paper_tables.inc"
    };
    std::vector<PaperTable> tables;
    for (const auto& file : kFiles) {
      for (PaperTable& table : read_paper_tables(file.toml, file.name)) {
        tables.push_back(std::move(table));
      }
    }
    return tables;
  }();
  return all;
}

const PaperTable& find_paper_table(const std::string& name) {
  std::vector<std::string> names;
  for (const PaperTable& table : paper_tables()) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  fail(ErrorKind::kUsage, "table {}", unknown_name(name, names));
}

std::span<const StudiedFigure> studied_figures() {
  constexpr bool kTakesData = true;
  static const std::vector<StudiedFigure> all{{"ba-table1", "invariance"},
                                              {"santurkar-figure4", "landscape"},
                                              {"santurkar-shift", "covariate-shift", kTakesData},
                                              {"santurkar-noise", "noisy-batchnorm", kTakesData},
                                              {"shen-figure2", "statistics", kTakesData},
                                              {"shen-figure5", "batch-size", kTakesData},
                                              {"shen-figure6", "singular-values", kTakesData},
                                              {"shen-figure7", "figure7"}};
  return all;
}

Options options_of(const StudiedFigure& figure, const FigureRequest& request, Backend& backend) {
  Options options{backend};
  options.quiet = false;
  if (!find_study(figure.study).exact) {
    options.seed = std::uint64_t(request.seeds.front());
    options.seeds = int(request.seeds.size());
  }
  if (figure.takes_data) {
    options.recipe = request.recipe;
    options.data = request.data;
  }
  return options;
}

}  // namespace keel::study
