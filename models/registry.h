// The models of the zoo and their recipes, by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/task/task.h"

namespace keel::models {

struct Recipe {
  std::string name, toml;
};

struct ModelEntry {
  std::string name;
  std::unique_ptr<task::Task> (*make)();
  std::vector<Recipe> recipes;
};

// Every model: those of the zoo, then those added.
std::span<const ModelEntry> all_models();
// Adds a model from outside, before any command runs. Throws Error{kUsage} for a name that is taken
// or empty, and for a model without recipes.
void add_model(ModelEntry entry);
// Throws Error{kUsage} for an unknown name, with the nearest known one.
const ModelEntry& find_model(std::string_view name);
// The recipe's text. Throws Error{kUsage} for an unknown name, with the nearest known one.
const std::string& find_recipe(const ModelEntry& entry, std::string_view name);

}  // namespace keel::models
