// Recipes that follow papers and programs, checked against a table of what these say: recipes.txt.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

#include "frontend/text/lines.h"
#include "frontend/train/config.h"
#include "models/registry.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

struct Row {
  std::string value, source;
};

struct RecipeRows {
  bool is_ours = false;
  std::map<std::string, Row> rows;  // by key
};

struct RecipeTable {
  std::set<std::string> sources;
  std::map<std::string, RecipeRows> recipes;  // by "task recipe"
};

// The rest of a line after its blanks.
std::string rest_of(std::istringstream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

void add_recipe(RecipeTable& table, const std::string& name, const std::string& rest) {
  RecipeRows& recipe = table.recipes[name];
  recipe.is_ours = rest == "is ours";
  if (!rest.starts_with("like ")) return;
  const std::string other = name.substr(0, name.find(' ') + 1) + rest.substr(5);
  REQUIRE(table.recipes.contains(other));
  recipe.rows = table.recipes.at(other).rows;
}

RecipeTable read_table(const std::string& text) {
  RecipeTable table;
  std::string last;
  text::Lines lines(text);
  while (const std::optional<text::Line> each = lines.next()) {
    if (each->text.empty() || each->text.starts_with('#')) continue;
    std::istringstream line{std::string(each->text)};
    std::string first, second;
    line >> first >> second;
    const std::string rest = rest_of(line);
    if (each->text.starts_with(' ')) {
      table.recipes.at(last).rows[first] = {second == "\"\"" ? "" : second, rest};
    } else if (first == "source") {
      table.sources.insert(second);
    } else {
      add_recipe(table, last = first + " " + second, rest);
    }
  }
  return table;
}

const RecipeTable& table() {
  static const RecipeTable read =
      read_table(test::read_bytes(KEEL_SOURCE "/tests/models/recipes.txt"));
  return read;
}

// Calls check(name, rows, entry, recipe) for the recipes that follow somebody.
template <class Check>
void for_each_followed(const Check& check) {
  for (const ModelEntry& entry : all_models()) {
    for (const Recipe& recipe : entry.recipes) {
      const auto found = table().recipes.find(entry.name + " " + recipe.name);
      if (found == table().recipes.end() || found->second.is_ours) continue;
      CAPTURE(found->first);
      check(found->second, entry, recipe);
    }
  }
}

std::map<std::string, std::string> values_of(const train::Config& config) {
  std::map<std::string, std::string> values;
  for (const OptionFact& fact : config.facts()) values[fact.name] = fact.value;
  return values;
}

// The comment on top of a recipe, as one line.
std::string head_of(const std::string& toml) {
  std::string head;
  text::Lines lines(toml);
  while (const std::optional<text::Line> line = lines.next()) {
    if (!line->text.starts_with("# ")) break;
    head += std::string(line->text.substr(2)) + " ";
  }
  return head;
}

TEST_CASE("recipes: the table knows every recipe, and no other") {
  std::set<std::string> known, there;
  for (const auto& [name, recipe] : table().recipes) {
    known.insert(name);
    CAPTURE(name);
    CHECK(recipe.is_ours == recipe.rows.empty());
  }
  for (const ModelEntry& entry : all_models()) {
    for (const Recipe& recipe : entry.recipes) there.insert(entry.name + " " + recipe.name);
  }
  for (const std::string& name : there) {
    CAPTURE(name);
    CHECK(known.contains(name));
  }
  for (const std::string& name : known) {
    CAPTURE(name);
    CHECK(there.contains(name));
  }
}

TEST_CASE("recipes: their numbers are those of the table, and every other one is the default") {
  for_each_followed([](const RecipeRows& said, const ModelEntry& entry, const Recipe& recipe) {
    train::Config config(entry.make()), expected(entry.make());
    config.apply_toml(recipe.toml, recipe.name);
    for (const auto& [key, row] : said.rows) expected.set(key, row.value);
    const auto values = values_of(config);
    for (const auto& [key, value] : values_of(expected)) {
      CAPTURE(key);
      CHECK(values.at(key) == value);
    }
    CHECK_NOTHROW(config.validate());
  });
}

TEST_CASE("recipes: every number has a source") {
  for_each_followed([](const RecipeRows& said, const ModelEntry&, const Recipe& recipe) {
    for (const auto& [key, value] : train::read_settings(recipe.toml, recipe.name)) {
      CAPTURE(key);
      CHECK(said.rows.contains(key));
    }
    for (const auto& [key, row] : said.rows) {
      CAPTURE(key);
      const std::string mark = row.source.substr(0, row.source.find_first_of(" :;"));
      CAPTURE(mark);
      CHECK(table().sources.contains(mark));
    }
  });
}

TEST_CASE("recipes: where one departs from its source its head says so") {
  int departures = 0;
  for_each_followed([&](const RecipeRows& said, const ModelEntry&, const Recipe& recipe) {
    const std::string head = head_of(recipe.toml);
    CAPTURE(head);
    for (const auto& [key, row] : said.rows) {
      if (row.source.find("departs:") == std::string::npos) continue;
      CAPTURE(key);
      const std::size_t from = row.source.find('"') + 1, to = row.source.find('"', from);
      REQUIRE(to != std::string::npos);
      CHECK(head.find(row.source.substr(from, to - from)) != std::string::npos);
      ++departures;
    }
  });
  CHECK(departures > 0);
}

}  // namespace
}  // namespace keel::models
